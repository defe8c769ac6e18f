"""Meta-World's v2 rewards and observations, rewritten by rule: the same bits, several times faster.

`methods(cls)` parses the source of a task's class and returns new functions. Meta-World's modules
stay as they are. The rules are checked with Meta-World 3.1.1 (`tests/envs/metaworld/test_lean.py`
compares with `==`); with another version `cwbench.envs.metaworld.make` does not use this module.

| Meta-World                                        | rewritten                              |
| ------------------------------------------------- | -------------------------------------- |
| if self.reward_function_version == "v2": A else B | A                                      |
| assert, annotations, decorators                   | (removed)                              |
| self.data.body("x").xpos, get_body_com("x")       | self.views["body.x.xpos"]              |
| self._get_site_pos("x")                           | self.views["site.x.xpos"].copy()       |
| self.tcp_center                                   | self.tcp, computed once per step       |
| float(np.linalg.norm(v)), np.linalg.norm(v)       | norm(v), norm64(v)                     |
| tolerance(x, bounds=(a, b), margin=m, sigmoid=s)  | long_tail(x, a, b, m), gaussian(...)   |
| np.array([0.25, 1.0, 0.5])                        | a read-only constant                   |
| info = {"success": s, ...}                        | info = s                               |
| Rotation.from_matrix(m).as_quat()                 | quaternion(m)                          |
| self._get_pos_objects() in compute_reward         | self.objects, of the observation       |
| norm(self.obj_init_pos - self._target_pos)        | once per episode, in self.episode      |
| self.touching_main_object and x                   | x and self.touching_main_object        |
"""

import ast
import inspect
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from cwbench.envs.metaworld import scalars

# Methods that are not part of a step, or that `lean.Lean` has itself.
LEFT_OUT = {
    *("__init__", "reset_model", "_reset_hand", "model_name", "_get_obs_dict"),
    *("fix_extreme_obj_pos", "adjust_initObjPos", "_target_site_config"),
}
HELPERS = ("norm", "norm64", "long_tail", "gaussian", "hamacher", "rect_prism", "clip", "hstack")
RENAMED = {
    "np.clip": "clip",
    "np.hstack": "hstack",
    "reward_utils.hamacher_product": "hamacher",
    "reward_utils.rect_prism_tolerance": "rect_prism",
}
PURE = {"float", "abs", "bool", "min", "max", "norm", "norm64"}
# Attributes that change during an episode.
MOVING = {
    *("tcp", "views", "data", "model", "episode", "objects", "touching_main_object"),
    *("left_pad", "right_pad", "init_left_pad", "init_right_pad", "_target_to_obj_init"),
}


def methods(
    cls: type, *, without: Collection[str] = (), live: Collection[str] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rewritten methods of a task's class, and the module names that they see.

    `without` names methods to leave out, `live` attributes that are views of MuJoCo's memory.
    """
    [source] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(source, ast.ClassDef)
    rules = Rules()
    body: list[ast.stmt] = []
    for method in _of_a_step(source, without):
        faster = rules.visit(method)
        of_instance = any(argument.arg == "self" for argument in method.args.args)
        body.append(OncePerEpisode(faster, live).visit(faster) if of_instance else faster)
    helpers = {name: getattr(scalars, name) for name in (*HELPERS, "quaternion")}
    names = {**vars(sys.modules[cls.__module__]), **helpers, **rules.constants}
    made = ast.ClassDef("Rewritten", [], [], body, [])
    code = ast.fix_missing_locations(ast.Module([made], []))
    exec(compile(code, f"<rewritten {cls.__name__}>", "exec"), names)
    found = {k: v for k, v in vars(names["Rewritten"]).items() if not k.startswith("__")}
    return found, names


def _of_a_step(source: ast.ClassDef, without: Collection[str]) -> Iterator[ast.FunctionDef]:
    for method in source.body:
        if not isinstance(method, ast.FunctionDef) or method.name in LEFT_OUT | {*without}:
            continue
        cached = "cached_property" in map(ast.unparse, method.decorator_list)
        if not cached and not method.name.startswith("_set_"):
            yield method


class Rules(ast.NodeTransformer):
    """All rules but the last two of the table."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {}
        self.method = ""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.method = node.name
        self.generic_visit(node)
        node.returns = None
        for argument in node.args.args:
            argument.annotation = None
        kept = ("staticmethod", "property")
        node.decorator_list = [d for d in node.decorator_list if ast.unparse(d) in kept]
        if node.name == "evaluate_state":
            _remove_unread(node)
        return node

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        v2 = ast.unparse(node.test) == "self.reward_function_version == 'v2'"
        return node.body if v2 else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """The contact test is slow, so it comes last."""
        self.generic_visit(node)
        if isinstance(node.op, ast.And):
            node.values.sort(key=lambda value: ast.unparse(value) == "self.touching_main_object")
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return ast.Pass()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        return ast.Pass() if node.value is None else ast.Assign([node.target], node.value)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        self.generic_visit(node)
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "success":
                return value
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if ast.unparse(node) == "self.tcp_center":
            return _parse("self.tcp")
        inner = node.value  # self.data.KIND("name") of self.data.KIND("name").ATTRIBUTE
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            kinds = {f"self.data.{kind}" for kind in ("body", "site", "geom", "joint")}
            if ast.unparse(inner.func) in kinds and isinstance(inner.args[0], ast.Constant):
                return _view(inner.func.attr, inner.args[0].value, node.attr)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = ast.unparse(node.func)
        rule = self._rules().get(name)
        if name.startswith("Rotation.from_matrix(") and name.endswith(".as_quat"):
            rule = self._quaternion
        if (made := rule(node) if rule else None) is not None:
            return made
        if name in RENAMED:
            node.func = _parse(RENAMED[name])
        return self.generic_visit(node)

    def _rules(self) -> dict[str, Callable[[ast.Call], ast.AST | None]]:
        """How calls by these names are rewritten; a rule returns None where it does not apply."""
        return {
            "float": self._float_of_norm,
            "np.linalg.norm": lambda node: _call("norm64", self.visit(node.args[0])),
            "self.get_body_com": lambda node: _view_of("body", node),
            "self._get_site_pos": self._site,
            "reward_utils.tolerance": self._tolerance,
            "tolerance": self._tolerance,
            "self._get_pos_objects": self._objects,
            "np.array": self._constant,
        }

    def _float_of_norm(self, node: ast.Call) -> ast.AST | None:
        inner = node.args[0]
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            if inner.func.attr == "item":
                inner = inner.func.value
            if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "np.linalg.norm":
                return _call("norm", self.visit(inner.args[0]))
        return None

    def _site(self, node: ast.Call) -> ast.AST | None:
        view = _view_of("site", node)
        return view and ast.Call(ast.Attribute(view, "copy", ast.Load()), [], [])

    def _tolerance(self, node: ast.Call) -> ast.AST | None:
        options = {option.arg: option.value for option in node.keywords}
        curve, bounds = options.get("sigmoid"), options.get("bounds")
        if not (isinstance(curve, ast.Constant) and isinstance(bounds, ast.Tuple)):
            return None
        if curve.value not in ("long_tail", "gaussian") or "margin" not in options:
            return None
        arguments = (node.args[0], *bounds.elts, options["margin"])
        return _call(curve.value, *map(self.visit, arguments))

    def _objects(self, node: ast.Call) -> ast.AST | None:
        return _parse("self.objects") if self.method == "compute_reward" else None

    def _constant(self, node: ast.Call) -> ast.AST | None:
        try:
            value = np.array(ast.literal_eval(node.args[0]))
        except ValueError:
            return None
        if node.keywords or len(node.args) > 1:
            return None
        value.flags.writeable = False
        name = f"_constant{len(self.constants)}"
        self.constants[name] = value
        return ast.Name(name, ast.Load())

    def _quaternion(self, node: ast.Call) -> ast.AST:
        assert isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call)
        return _call("quaternion", self.visit(node.func.value.args[0]))


class OncePerEpisode(ast.NodeTransformer):
    """Norms made of an episode's constants are computed once and kept in `self.episode`."""

    def __init__(self, function: ast.FunctionDef, live: Collection[str]) -> None:
        self.name, self.moving, self.count = function.name, MOVING | {*live}, 0
        self.constant: set[str] = set()  # local names
        variable = _changed_names(function)
        for line in function.body:  # not what is set under an `if`
            if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
                name = line.targets[0].id
                if name not in variable and self.fixed(line.value):
                    self.constant.add(name)

    def fixed(self, node: ast.AST | None) -> bool:
        """Whether an expression consists of the episode's attributes, numbers and arithmetic."""
        match node:
            case None | ast.Constant():
                return True
            case ast.Name(id=name):
                return name in self.constant or name.startswith("_constant")
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return name not in self.moving
            case ast.BinOp(left=a, right=b) | ast.Subscript(value=a, slice=b):
                return self.fixed(a) and self.fixed(b)
            case ast.UnaryOp(operand=a):
                return self.fixed(a)
            case ast.Slice(lower=a, upper=b, step=c):
                return self.fixed(a) and self.fixed(b) and self.fixed(c)
            case ast.Call(func=ast.Name(id="norm" | "norm64" | "float" | "abs"), args=arguments):
                return all(map(self.fixed, arguments)) and not node.keywords
        return False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if not (ast.unparse(node.func) in ("norm", "norm64") and self.fixed(node)):
            return self.generic_visit(node)
        key = repr(f"{self.name} {self.count}")
        self.count += 1
        compute = f"self.episode.setdefault({key}, {ast.unparse(node)})"
        return _parse(f"self.episode[{key}] if {key} in self.episode else {compute}")


def _changed_names(function: ast.FunctionDef) -> set[str]:
    """Arguments, and local names that are set twice or written into."""
    found = {argument.arg for argument in function.args.args}
    stores: Counter[str] = Counter()
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                stores[name] += 1
            case ast.AugAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.Subscript(value=written, ctx=ast.Store()):
                found |= {part.id for part in ast.walk(written) if isinstance(part, ast.Name)}
    return found | {name for name, count in stores.items() if count > 1}


def _remove_unread(function: ast.FunctionDef) -> None:
    """Remove assignments to names that nobody reads and whose value has no effect."""
    before = -1
    while before != len(function.body):
        before = len(function.body)
        names = (node for node in ast.walk(function) if isinstance(node, ast.Name))
        read = {name.id for name in names if isinstance(name.ctx, ast.Load)}
        function.body = [line for line in function.body if not _unread(line, read)]


def _unread(line: ast.stmt, read: set[str]) -> bool:
    if not (isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)):
        return False
    calls = (node for node in ast.walk(line.value) if isinstance(node, ast.Call))
    return line.targets[0].id not in read and all(ast.unparse(c.func) in PURE for c in calls)


def _parse(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def _call(function: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(function, ast.Load()), list(arguments), [])


def _view(kind: str, name: object, attribute: str) -> ast.expr:
    return _parse(f"self.views[{f'{kind}.{name}.{attribute}'!r}]")


def _view_of(kind: str, node: ast.Call) -> ast.expr | None:
    """The position that a call with a constant name asks for."""
    [name] = node.args
    return _view(kind, name.value, "xpos") if isinstance(name, ast.Constant) else None
