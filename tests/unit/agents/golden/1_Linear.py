# Never run: test_prompt_cuda.c has the answer that a child would give of it.
class Model:
    pass
