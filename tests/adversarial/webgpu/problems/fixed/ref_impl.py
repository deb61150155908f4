def reference(x):
    return x + x
