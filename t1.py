import warnings, traceback, sys
import numpy as np
warnings.simplefilter("always")
from rffpk import *
from rffpk import kernels
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score as ari
X,y=make_blobs(120,3,centers=3,random_state=0)
def T(name,f):
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        try: r=f()
        except BaseException as e:
            r="!! %s: %s @ %s"%(type(e).__name__,str(e)[:200],traceback.extract_tb(e.__traceback__)[-1][:3])
    print(name,"->",r, "| WARN:" if w else "", sorted({str(x.message)[:130] for x in w}) if w else "",flush=True)
def summ(m): return (np.bincount(m.labels_,minlength=m.n_clusters), m.inertia_, m.objective_, m.s_, m.n_iter_)
K=KernelKMeans; P=KernelPowerKMeans; M=MultiKernelPowerKMeans
for w in (1e60,1e-50,1e100):
  for dt in (np.float32,np.float64):
    T(f"w={w} {dt.__name__}",lambda: summ(K(3,random_state=0).fit(X.astype(dt),sample_weight=np.full(120,w))))
    T(f"P w={w} {dt.__name__}",lambda: summ(P(3,random_state=0).fit(X.astype(dt),sample_weight=np.full(120,w))))
T("PowerKMeans f32 w=1e60",lambda: summ(PowerKMeans(3,random_state=0).fit(X.astype('f'),sample_weight=np.full(120,1e60))))
T("f32 linear 1e25",lambda: summ(K(3,kernel="linear",random_state=0).fit((X*1e24).astype('f'))))
T("P f32 linear 1e25",lambda: summ(P(3,kernel="linear",random_state=0).fit((X*1e24).astype('f'))))
T("f64 linear 1e160",lambda: summ(K(3,kernel="linear",random_state=0).fit((X*1e160))))
T("f32 poly",lambda: summ(P(3,kernel="poly",degree=8,gamma=1.,random_state=0).fit((X*1e3).astype('f'))))
T("PowerKMeans f32 1e25",lambda: summ(PowerKMeans(3,random_state=0).fit((X*1e24).astype('f'))))
T("poly deg 2.5",lambda: summ(P(3,kernel="poly",degree=2.5,gamma=1.,random_state=0).fit(X)))
T("poly coef0 -5",lambda: (summ(K(3,kernel="poly",degree=3,coef0=-50,gamma=.1,random_state=0).fit(X)), np.linalg.eigvalsh(center_kernel((.1*X@X.T-50)**3+0*np.eye(120)) if 0 else (np.eye(120)-1/120)@((.1*X@X.T-50)**3)@(np.eye(120)-1/120))[[0,-1]]))
Xp=np.abs(X)
for g in ("mean",None,0.5):
  for k in ("chi2","additive_chi2","sigmoid","poly","cosine","laplacian","rbf","linear"):
    T(f"{k} gamma={g}",lambda: summ(P(3,kernel=k,gamma=g,random_state=0).fit(Xp)))
T("chi2 neg",lambda: summ(P(3,kernel="chi2",random_state=0).fit(X)))
T("kernel_params gamma -1",lambda: summ(K(3,kernel_params={"gamma":-1.},random_state=0).fit(X)))
T("kernel_params gamma foo",lambda: summ(K(3,kernel_params={"gamma":"foo"},random_state=0).fit(X)))
T("kernel_params gama",lambda: summ(K(3,kernel_params={"gama":3},random_state=0).fit(X)))
T("multi sigma",lambda: summ(M(3,kernels=[("rbf",{"sigma":3})],random_state=0).fit(X)))
T("callable gamma word",lambda: summ(K(3,kernel=lambda a,b,gamma=99: float(gamma!="mean"),kernel_params={"gamma":"mean"}).fit(X[:10])))
A=np.random.default_rng(0).random((120,120))
T("multi list precomputed asym",lambda: summ(M(3,kernels=["precomputed","rbf"],random_state=0).fit([A,X])))
T("multi list precomputed nonsq",lambda: summ(M(3,kernels=["precomputed","rbf"],random_state=0).fit([A[:,:50],X])))
T("multi list precomputed X3",lambda: summ(M(3,kernels=["precomputed","rbf"],random_state=0).fit([X,X])))
T("KernelKMeans two precomputed",lambda: summ(K(3,kernel="precomputed",random_state=0).fit([X@X.T,np.eye(120)])))
T("KernelKMeans two views",lambda: summ(K(3,random_state=0).fit([X,X])))
T("KernelKMeans 1 view list",lambda: summ(K(3,random_state=0).fit([X])))
for mi in (1,2,5):
  T(f"max_iter {mi} k-means",lambda: K(5,init="k-means",n_init=1,max_iter=mi,random_state=0).fit(make_blobs(500,2,centers=40,random_state=1)[0]).n_iter_)
T("P max_iter",lambda: P(5,init="k-means",n_init=1,max_iter=3,random_state=0).fit(make_blobs(500,2,centers=40,random_state=1)[0]).n_iter_)
def lam(a,b): return float("nan")
T("callable nan",lambda: summ(K(3,kernel=lam).fit(X[:10])))
T("const rows",lambda: summ(P(3,random_state=0).fit(np.full((30,3),.1))))
T("const rows du",lambda: summ(M(3,kernels="du2015",random_state=0).fit(np.full((30,3),.1))))
T("const rows du k1",lambda: (lambda m:(summ(m),m.kernel_weights_))(M(1,kernels="du2015",random_state=0).fit(np.full((30,3),.1))))
T("zero rows du",lambda: summ(M(3,kernels="du2015",random_state=0).fit(np.zeros((30,3)))))
T("du list1",lambda: summ(M(3,kernels="du2015",random_state=0).fit([X])))
T("du n1",lambda: summ(M(1,kernels="du2015",random_state=0).fit(X[:1])))
for E in (K,P,M):
  T("n1",lambda: (lambda m:(summ(m),m.predict(X[:1]),m.transform(X[:1]),m.score(X[:1]),m.predict_proba(X[:1])))(E(1,random_state=0).fit(X[:1])))
  T("n2k2",lambda: summ(E(2,random_state=0).fit(X[:2])))
  for i in ("spectral","k-means","random"):
    T(f"{i} n1",lambda: summ(E(1,init=i,random_state=0).fit(X[:1])))
    T(f"{i} n=k=5",lambda: summ(E(5,init=i,random_state=0).fit(X[:5])))
    T(f"{i} const",lambda: summ(E(3,init=i,random_state=0).fit(np.ones((9,2)))))
T("zero diag precomputed",lambda: summ(P(2,kernel="precomputed",random_state=0).fit(np.zeros((6,6)))))
T("center neg diag",lambda: center_kernel(-np.eye(3)))
