"""The one exception of this package."""

from specjax.types import Error


class LoadError(Error):
  """A model file that cannot be used.

  The message is one paragraph: the file, what is wrong with it, what was expected and found.
  """

  def __init__(self, message: str):
    super().__init__(" ".join(message.splitlines()))  # what other libraries say may be longer
