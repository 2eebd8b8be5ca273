"""What tests hold besides public names: one module for each contract inside the package.

Only tests of a contract import its module. A name that no contract has may change without a change
of tests. Each module has at most ten names, and each name a sentence that says what it promises.
A module of the package is named where tests replace its functions or test most of them. The
compiled core `_core` and its twin `_reference` are contracts as a whole, and need no name here.
"""
