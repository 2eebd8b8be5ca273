"""Benchmarks: `python -m bench` lists the commands, README.md says what each measures and needs."""
