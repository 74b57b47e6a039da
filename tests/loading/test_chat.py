"""Chat templates: rendered as transformers does, and harmless when they are not."""

import pytest

from specjax.loading import chat, LoadError

MESSAGES = [
    {"role": "system", "content": "Be brief."}, {"role": "user", "content": "<Größe> & 'x'"}]


def render(source, messages=MESSAGES, prompt=True):
  return chat.render(source, messages, prompt, {"bos_token": "<s>"}, "here")


@pytest.mark.parametrize("source, text", [
    ("{{ bos_token }}{{ messages|length }}", "<s>2"),
    ("{% for m in messages %}\n  {% if loop.first %}\n{{ m.role }}\n  {% endif %}\n{% endfor %}",
     "system\n"),
    ("{% for m in messages %}{% if not loop.first %}{% break %}{% endif %}{{ m.role }}{% endfor %}",
     "system"),
    ("{{ messages[1]['content'] }}", "<Größe> & 'x'"),
    ("{{ messages[1]|tojson }}", '{"role": "user", "content": "<Größe> & \'x\'"}'),
    ("{{ {'a': [1]}|tojson(indent=1) }}", '{\n "a": [\n  1\n ]\n}'),
    ("{% if add_generation_prompt %}go{% endif %}", "go"),
    ("{% if tools %}tools{% endif %}{{ nothing }}", ""),
    ("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}"
     "{{ ns.n }}", "2"),
    ("{% macro f(x) %}[{{ x|trim }}]{% endmacro %}{{ f(' a ') }}", "[a]"),
    ("{% if strftime_now is defined %}{{ strftime_now('%Y') }}{% else %}no date{% endif %}",
     "no date"),
    ("{{ '-' * 3 }}", "---"),
])
def test_templates_render(source, text):
  assert render(source) == text


def test_the_generation_prompt_is_optional():
  assert render("{% if add_generation_prompt %}go{% endif %}", prompt=False) == ""


def refused(source, problem, **kwargs):
  with pytest.raises(LoadError, match=problem) as caught:
    render(source, **kwargs)
  assert str(caught.value).startswith("here: the chat template")


@pytest.mark.parametrize("source", [
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ messages.__class__.__base__ }}",
    "{{ raise_exception.__globals__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ (messages|tojson).__class__.__init__ }}",
    "{{ cycler.__init__.__globals__.os.popen('id') }}",
    "{{ lipsum.__globals__['os'].system('id') }}",
    "{{ self.__init__.__globals__ }}",
    "{{ ''|attr('__class__') }}{{ (''|attr('__class__')).mro() }}",
    "{{ '{0.__class__.__init__.__globals__}'.format(raise_exception) }}",
    "{{ messages.append(1) }}",
    "{{ messages[0].update({'role': 'x'}) }}",
    "{{ messages[0].clear() }}",
])
def test_the_way_to_python_objects_is_closed(source):
  before = [dict(message) for message in MESSAGES]
  try:
    text = render(source)
  except LoadError as error:
    assert "SecurityError" in str(error) or "UndefinedError" in str(error)
  else:
    assert text == ""  # an unsafe attribute is an undefined value, which prints as nothing
  assert MESSAGES == before


@pytest.mark.parametrize("source", [
    "{% include '/etc/passwd' %}", "{% import 'os' as os %}", "{% extends 'x' %}"])
def test_other_files_cannot_be_reached(source):
  refused(source, "failed: TypeError: no loader")


@pytest.mark.parametrize("source, problem", [
    ("{% for i in range(10**9) %}{% endfor %}", "powers are not allowed"),
    ("{% for i in range(1000000) %}{% endfor %}", "OverflowError"),
    ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
     "262144 steps"),
    ("{% for i in range(99999) %}{% set count_step = 1 %}{% for j in range(99999) %}{% endfor %}"
     "{% endfor %}", "262144 steps"),
    ("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}",
     "262144 steps"),
    ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "RecursionError"),
    ("{{ 'x' * 100000000 }}", "repeated sequence is too long"),
    ("{{ 100000000 * [1] }}", "repeated sequence is too long"),
    ("{% for i in range(90000) %}{{ 'x' * 1000 }}{% endfor %}", "prints more than 16777216"),
    ("x" * (1 << 21), "2097152 characters"),
    ("{% set n = namespace(x='x') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
     "MemoryError"),
    ("{{ '%9000000000d' % 1 }}", "MemoryError"),
    ("{{ 'x'.rjust(9000000000)|length }}", "MemoryError"),
])
def test_waste_is_stopped(source, problem):
  refused(source, problem)


@pytest.mark.parametrize("source, problem", [
    ("{% for %}", "TemplateSyntaxError"),
    ("{{ messages[0].content.nothing.at_all }}", "UndefinedError"),
    ("{{ 1 / 0 }}", "ZeroDivisionError"),
    ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
])
def test_failures_are_told(source, problem):
  refused(source, problem)


def test_a_template_can_be_used_again_after_it_ran_out_of_steps():
  source = "{% for m in messages %}{% for i in range(1000) %}{% endfor %}{% endfor %}done"
  refused(source, "steps", messages=MESSAGES * 1000)
  assert render(source) == "done"
