exec(open("t1.py").read().split("for w in (1e60")[0])
rng=np.random.default_rng(0)
T("init 2 labels k=3",lambda: summ(K(3,init=np.arange(120)%2).fit(X)))
T("init 4 labels k=3",lambda: summ(K(3,init=np.arange(120)%4).fit(X)))
T("init -1 labels k=3",lambda: summ(K(3,init=np.arange(120)%3-1).fit(X)))
for w in (1,1e-40,1e-43,1e-44,1e30,1e36,1e37,3e38):
    T(f"w={w} f32",lambda: (lambda m:(m.inertia_/w,m.objective_/w,m.dual_coef_.sum(1), ari(m.labels_,y)))(P(3,random_state=0,gamma=.05).fit(X.astype('f'),sample_weight=np.full(120,w))))
    T(f"w={w} f32 linear",lambda: (lambda m:(m.inertia_/w,m.objective_/w))(P(3,random_state=0,kernel="linear").fit(X.astype('f'),sample_weight=np.full(120,w))))
Xo=X.copy(); Xo[0]=1e21; Xb=X*1e19
for i in ("random","k-means++","spectral",np.arange(120)%3):
    n=i if isinstance(i,str) else "array"
    T("f32 overflow "+n,lambda: summ(K(3,kernel="linear",init=i,random_state=0).fit((X*1e24).astype('f'))))
    T("f32 outlier "+n,lambda: summ(K(3,kernel="linear",init=i,random_state=0).fit(Xo.astype('f'))))
    T("f32 1e19 "+n,lambda: summ(K(3,kernel="linear",init=i,random_state=0).fit(Xb.astype('f'))))
    T("poly2.5 "+n,lambda: summ(K(3,kernel="poly",degree=2.5,gamma=1.,coef0=0,init=i,random_state=0).fit(X)))
    T("callable nan "+n,lambda: summ(K(3,kernel=lambda a,b: np.sqrt(a@b) if a@b>0 else np.nan,init=i,random_state=0).fit(X)))
T("poly2.5 sklearn nan count",lambda: np.isnan((X@X.T)**2.5).sum())
for c in (.1,.3,.7,1/3,1e3+.1):
  for n,d in ((30,3),(40,7),(100,11)):
    mats=[kernels.FittedKernel(np.full((n,d),c),s).matrix() for s in kernels.du2015(np.full((n,d),c))]
    print(c,n,d,[ (float(m.min()),float(m.max())) for m in mats if np.ptp(m)>0][:3])
Xc=np.vstack([np.full((40,7),.1)])
for s in range(3):
  T("multi const rows",lambda:(lambda m:(summ(m),m.kernel_weights_.round(3)))(M(2,kernels="du2015",random_state=s).fit(Xc)))
print(K(3,kernel="precomputed",random_state=0).fit([X@X.T,np.eye(120)]).inertia_, K(3,kernel="precomputed",random_state=0).fit((X@X.T+np.eye(120))/2).inertia_)
import warnings as W
with W.catch_warnings():
    W.simplefilter("error")
    T("neg diag RuntimeWarning",lambda: summ(K(3,kernel="poly",degree=3,coef0=-50,gamma=.1,random_state=0).fit(X)))
# predict in float32 with large offset
for off in (0,1e3,1e4,1e5):
    Y=(X+off).astype('f')
    for k in ("linear","rbf","poly"):
        m=P(3,kernel=k,random_state=0,n_init=2,gamma=(.05 if k=="rbf" else 1e-6)).fit(Y)
        print(off,k,"label!=predict",(m.labels_!=m.predict(Y)).sum(),"score/inertia",-m.score(Y)/m.inertia_, "max abs transform err",end=" ")
        if k=="linear":
            C=m.dual_coef_.astype(float)@Y.astype(float); C2=C/m.dual_coef_.sum(1,dtype=float)[:,None]
            d=np.sqrt(((Y.astype(float)[:,None]-C2)**2).sum(2)); print(abs(d-m.transform(Y)).max())
        else: print()
