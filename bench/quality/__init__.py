"""The labels of the package beside peers, its objectives, and whether results change."""
