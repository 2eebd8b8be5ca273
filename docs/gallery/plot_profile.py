"""
What clusters are
=================

The columns that set each cluster apart, and its stability under refits to 70 % of the rows.
"""

from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rffpk import DiffusionPowerKMeans, describe, plot

X = load_wine(as_frame=True).data
model = make_pipeline(StandardScaler(), DiffusionPowerKMeans(3, random_state=0)).fit(X)
profiles = describe(model, X, random_state=0)
print(profiles)
plot.profile(profiles)
