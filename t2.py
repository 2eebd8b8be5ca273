import warnings, traceback, pickle
import numpy as np
exec(open("t1.py").read().split("for w in (1e60")[0])
rng=np.random.default_rng(0)
# predict vs labels on indefinite
Xp=np.abs(X)
for k,kw in (("sigmoid",dict(gamma=.1)),("sigmoid",dict(gamma=.01,coef0=0)),("additive_chi2",{}),("poly",dict(coef0=-5,gamma=.1))):
  for E in (K,P):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m=E(3,kernel=k,random_state=0,**kw).fit(Xp)
        print(k,E.__name__,"label!=predict",(m.labels_!=m.predict(Xp)).sum(),"score",m.score(Xp),"inertia",m.inertia_,"obj",m.objective_,"transform argmin diff",(m.transform(Xp).argmin(1)!=m.labels_).sum())
A=rng.standard_normal((120,120)); A=A+A.T; np.fill_diagonal(A,np.abs(np.diag(A)))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    m=K(3,kernel="precomputed",random_state=0).fit(A); print("precomp indefinite",(m.labels_!=m.predict(A)).sum(), m.inertia_, m.objective_)
    m=P(3,kernel="precomputed",random_state=0).fit(A); print("precomp indefinite P",(m.labels_!=m.predict(A)).sum(), m.inertia_, m.objective_)
# zero weights = dropping rows
w=np.ones(120); w[::3]=0
from rffpk._dual_estimator import _spectral
for i in ("k-means++","spectral"):
    Xz=np.vstack([X, X[:60]*0+rng.normal(0,1,(60,3))*60]); wz=np.r_[np.ones(120),np.zeros(60)]
    a=K(3,init=i,gamma=.05,n_init=3,random_state=0).fit(Xz,sample_weight=wz); b=K(3,init=i,gamma=.05,n_init=3,random_state=0).fit(X)
    print(i,"zero weights inertia",a.inertia_,"dropped",b.inertia_)
# spectral vs exact centring n>256
from sklearn.datasets import load_digits
from rffpk import _dual, kernels
D=load_digits().data
for k in (10,30,60):
    fk=kernels.FittedKernel(D,kernels.specification(("rbf",1/(2*2*D.var(0).sum())),"k"))
    pr=_dual.Products([fk],1,True)
    n=len(D); Kc=center_kernel(fk.matrix())
    ev=np.linalg.eigh(Kc)[1][:,-k:]; ev2=np.linalg.eigh(pr.stored[0][:,:n])[1][:,-k:]
    print("spectral k",k,"principal cosine min",np.linalg.svd(ev.T@ev2)[1][-3:], "ones in span", np.linalg.norm(ev2.T@np.ones(n))/np.sqrt(n), np.linalg.norm(ev.T@np.ones(n))/np.sqrt(n))
# adversarial ordering: period matches step
n=2560; lab=np.arange(n)%10
Y=np.eye(10)[lab]*10+rng.normal(0,1,(n,10))
fk=kernels.FittedKernel(Y,kernels.specification("linear","k")); pr=_dual.Products([fk],1,True)
Kc=center_kernel(fk.matrix()); e1=np.linalg.eigvalsh(Kc)[-11:]; e2=np.linalg.eigvalsh(pr.stored[0][:,:n])[-11:]
print("periodic", e1[:3],e1[-3:],e2[:3],e2[-3:])
for dt in (np.float32,np.float64):
    m=K(10,kernel="linear",init="spectral",n_init=1,random_state=0).fit(Y.astype(dt)); print("periodic spectral ari",ari(lab,m.labels_),m.inertia_)
