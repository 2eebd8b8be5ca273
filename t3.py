import warnings, pickle
import numpy as np
exec(open("t1.py").read().split("for w in (1e60")[0])
import pandas as pd
rng=np.random.default_rng(0)
from sklearn.base import clone
# mutated X
for E in (K,P,M):
    m=E(3,random_state=0).fit(X); p=m.transform(X)
    m2=pickle.loads(pickle.dumps(m)); assert (m2.transform(X)==p).all()
    Z=X.copy(); m=E(3,random_state=0).fit(Z); Z[:]=0; print("mutation changes transform", not np.array_equal(m.transform(X),p))
    c=clone(m)
    df=pd.DataFrame(X,columns=list("abc")); m=E(3,random_state=0).fit(df); m.predict(df[:1]); m.fit(X[:50,:2]); print(hasattr(m,"feature_names_in_"),m.n_features_in_,m.predict(X[:1,:2]).shape,m.transform(X[:1,:2]).shape)
m=M(3,random_state=0)
df=pd.DataFrame(X,columns=list("abc"));T("multi DF views",lambda: summ(m.fit([df[["a","b"]],df[["c"]]])));T("then array",lambda: summ(m.fit(X)))
# n_jobs same bits
big=make_blobs(1500,6,centers=8,cluster_std=3,random_state=1)[0]
lap=rng.random((1500,5))
for kw in (dict(kernel="laplacian"),dict(kernel="chi2"),dict(kernel="rbf",init="spectral",n_init=2),dict(kernel="sigmoid",gamma=.1)):
  for cache in (True,False):
    for dt in (np.float32,np.float64):
      a=[]
      for j in (1,3,4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            m=P(8,cache=cache,n_jobs=j,random_state=0,max_iter=60,**({"n_init":2}|kw)).fit(lap.astype(dt)); a.append((m.dual_coef_.tobytes(),m.objective_,m.transform(lap.astype(dt)).tobytes(),m.inertia_))
      print(kw,cache,dt.__name__,a[0]==a[1]==a[2])
a=[]
for j in (1,3):
    m=M(5,kernels="du2015",n_init=2,n_jobs=j,random_state=0,max_iter=50).fit(lap[:700]); a.append((m.dual_coef_.tobytes(),m.kernel_weights_.tobytes()))
print("du n_jobs",a[0]==a[1])
# soft & objective consistency
def M_s(d,s): return ((d**s).mean(1))**(1/s)
for kw in (dict(s_final=-4.),dict(stop="objective"),dict(s_final=-4.,stop="objective"),dict(s_final=-4.,init="random",n_init=3),dict(s0=-1.,anneal_factor=1.1),dict(s_final=-1e6),dict(s0=-0.2,s_final=-.2),dict(s0=-1e9)):
  for dt in (np.float64,np.float32):
    with warnings.catch_warnings(record=True) as ww:
        warnings.simplefilter("always")
        ws=rng.random(120); m=P(4,random_state=0,**kw).fit(X.astype(dt),sample_weight=ws)
        d=m.transform(X)**2; mn=d.min(1,keepdims=True)
        o=ws@(mn[:,0]*M_s(np.maximum(d,1e-300)/np.maximum(mn,1e-300),m.s_)) if np.isfinite(m.s_) and m.s_>-1e5 else np.nan
        print(kw,dt.__name__,m.s_,m.objective_,o,m.inertia_,-m.score(X.astype(dt),sample_weight=ws),[str(x.message)[:60] for x in ww])
