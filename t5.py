exec(open("t1.py").read().split("for w in (1e60")[0])
# spectral depends on row order / offset centre; compare start objective
from sklearn.datasets import load_digits
D=load_digits(); Xd=D.data; n=len(Xd)
rng=np.random.default_rng(0)
# structured ordering: rows at multiples of step all from one cluster
Y,l=make_blobs(2000,10,centers=8,cluster_std=4,random_state=0)
step=-(-2000//256)
o=np.argsort(l,kind="stable"); pos=np.r_[np.arange(0,2000,step),np.setdiff1d(np.arange(2000),np.arange(0,2000,step))]
order=np.empty(2000,int); order[pos]=o
for name,Z,zl in (("shuffled",Y,l),("one cluster on the places",Y[order],l[order])):
    for k in (8,):
        m=K(k,kernel="rbf",gamma=.005,init="spectral",n_init=1,random_state=0,max_iter=300).fit(Z)
        first=[r for r in m.history_ if "s" in r][0]
        print(name,k,"first objective",first["objective"],"end",m.inertia_,"n_iter",m.n_iter_)
# zero-weight rows and spectral
Xz=np.vstack([X, rng.normal(0,1,(400,3))*30]); wz=np.r_[np.ones(120),np.zeros(400)]
for g in (.05,.005):
    a=K(3,init="spectral",gamma=g,n_init=1,random_state=0).fit(Xz,sample_weight=wz); b=K(3,init="spectral",gamma=g,n_init=1,random_state=0).fit(X)
    fa=[r for r in a.history_ if "s" in r][0]["objective"]; fb=[r for r in b.history_ if "s" in r][0]["objective"]
    print("spectral zero w",g,a.inertia_,b.inertia_,"first",fa,fb,"repairs",[r["repairs"] for r in a.history_ if "s" in r][:3])
# weighted zero: variance/noise, PK
a=P(3,gamma=.05,random_state=0).fit(Xz,sample_weight=wz); print(a.inertia_, P(3,gamma=.05,random_state=0).fit(X).inertia_)
# max_iter for PowerKMeans
print("PowerKMeans n_iter max_iter=3:",PowerKMeans(5,init="k-means",n_init=1,max_iter=3,sample=None,random_state=0).fit(Y).n_iter_)
# kernel mean for multi seeds etc; shift of views; pickle size
import pickle
Kx=X@X.T
m=K(3,kernel="precomputed",random_state=0).fit(Kx); print("pickle bytes",len(pickle.dumps(m)),Kx.nbytes)
# tol meaning multi-run independence: starts' results equal alone?
