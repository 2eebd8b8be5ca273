#include "dispatch.h"

#define DECLARE(isa) extern const rffpk_kernels rffpk_##isa##_f32, rffpk_##isa##_f64

DECLARE(plain);
#ifdef RFFPK_HAVE_VECTOR
DECLARE(vector);
#endif
#ifdef RFFPK_HAVE_X86_LEVELS
DECLARE(x86_64_v3);
DECLARE(x86_64_v4);
#endif

static int runs_everywhere(void) { return 1; }

#ifdef RFFPK_HAVE_X86_LEVELS
static int runs_x86_64_v3(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2");
}

static int runs_x86_64_v4(void)
{
    return runs_x86_64_v3() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static const rffpk_variant variants[] = {
    {"plain", runs_everywhere, &rffpk_plain_f32, &rffpk_plain_f64},
#ifdef RFFPK_HAVE_VECTOR
    {RFFPK_BASELINE, runs_everywhere, &rffpk_vector_f32, &rffpk_vector_f64},
#endif
#ifdef RFFPK_HAVE_X86_LEVELS
    {"x86-64-v3", runs_x86_64_v3, &rffpk_x86_64_v3_f32, &rffpk_x86_64_v3_f64},
    {"x86-64-v4", runs_x86_64_v4, &rffpk_x86_64_v4_f32, &rffpk_x86_64_v4_f64},
#endif
};

size_t rffpk_n_variants(void) { return sizeof variants / sizeof variants[0]; }

const rffpk_variant *rffpk_variant_at(size_t i) { return &variants[i]; }
