"""Networks of published drafters, which read the target's hidden states.

Each file is one architecture in flax linen, with a frozen config, and gives pure functions over an
explicit cache. What pairs with what is always the same: the target has read tokens t_0 .. t_n, with
hidden states f_0 .. f_n, and t_{n+1} is the token after them, known but not read yet.

  EAGLE, MTP   row i takes f_i and token t_{i+1}, and predicts t_{i+2}
  Medusa       head k takes f_n and predicts t_{n+2+k}
  DFlash       a block of rows at the positions of t_{n+1} and its successors, over f_0 .. f_n
"""
