"""Float64 arithmetic whose results are the same bits on every CPU, for any number of threads.

Floating-point numbers differ between machines for three reasons, and ``f64`` removes each:

- Sums are rounded in the order of the kernel, which follows the CPU and the threads. Here operands
  of products and sums are first rounded to a grid, coarse enough that float64 holds every partial
  sum exactly: then no order rounds. With 2^k terms both factors of a product keep (53 - k) / 2
  bits of the largest number of their row (22 of 256 terms, 21 of 2,048), about what float32 keeps.
- ``exp``, ``log``, ``tanh``, ``cos`` and powers differ between libraries, and in one library
  between CPUs. Here they are polynomials and products, also those of the learning rate.
- Compilers contract ``a * b + c`` where the CPU can. Here each operation is a kernel of its own.
  Additions, multiplications, divisions and square roots are rounded correctly by every CPU
  (IEEE 754), as are copies, comparisons and integers.

``grid``, ``functions``, ``matrices``
    Sums and products; functions of single numbers; orthogonal matrices.
``operations``, ``softmax``, ``normalisation``, ``convolution``, ``draws``
    PyTorch's operations made of them.
``mode``
    The block in which these take the place of PyTorch's own: within it each operation on float64
    is either known to be exact, or replaced by one that is, or an error. Models and losses are
    written as for any other type; gradients go the same way.
``kernels``
    The inner loops of recurrences.
"""
