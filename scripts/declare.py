#!/usr/bin/env python3
"""Writes type declarations and schemas from the declarations of the Rust crates.

Arguments, plain values, names and error codes are declared once, in Rust, with their meaning, unit and default.
`scripts/declare.py` writes the declarations of each package, and the JSON Schemas of the command's output. With
`--check`, it writes nothing, and fails if a file differs from what it would write.
"""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import ClassVar

ROOT = Path(__file__).resolve().parent.parent
TYPESCRIPT = ROOT / "bindings-wasm/js/src/values/declared.ts"
PYTHON = ROOT / "bindings-python/python/tallyfold"
ERRORS = ROOT / "docs/errors.md"
NOTICE = "Written by scripts/declare.py from what the Rust crates declare. Change it there."
SURFACE = "cargo run --quiet --package tallyfold-sandbox --example surface --features surface"
SCHEMA = "cargo run --quiet --package tallyfold-cli -- schema"

#: The documents that the command prints, each with the name of its schema's file.
SCHEMAS = {"counts": "output", "check": "check", "doctor": "doctor", "explain": "explain"}

#: Who has to act on the errors of each kind.
KINDS = {
    "config": "The arguments or the order of calls are wrong; usually nothing was sent.",
    "auth": "The credentials or the tokens were refused, or there are none.",
    "service": "The service or the connection to it has failed.",
    "response": "A response or a saved table is not a valid result, or could not be processed.",
}
#: Values that have another name in the packages.
RENAMED = {"Format": "ExportFormat", "Progress": "WindowCounts", "Windows": "ExportWindows"}
#: Values for which the packages have classes that are written by hand.
CLASSES = {"Counts"}
#: Options whose fields exclude each other, which the packages declare by hand.
BY_HAND = {"FaultOptions"}
#: The packages' description of the state of a check. In the packages, the state is a document.
STATE = "The state for the next check, as a document with a checksum: pass it as `state`."
#: Values that are not types of their own in the packages, and the type that stands for each; `None` for the list of its names.
INLINED = {"FaultKind": None, "Scene": None, "Outcome": "CountName", "Target": None, "HostFailure": None}

#: The type of arguments that accept names: any sequence of strings that is not itself a string.
TEXTS = """
class Texts(Protocol):
    \"""Every `Sequence[str]` but `str`, which can't be asked whether it contains any object.\"""

    def __contains__(self, value: object, /) -> bool: ...
    def __getitem__(self, index: int, /) -> str: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
""".lstrip()

#: The class of limits. It comes after the type of its arguments, and before the arguments that contain a `Limits`.
LIMITS = """
@dataclass(frozen=True, slots=True, init=False)
class Limits:
    \"""{about}

    Limits that you don't set have their defaults.

    Args:
{arguments}

    Raises:
        ConfigError: for a limit that is not a number, or too large for this machine.

    >>> tallyfold.Limits(groups=1000).groups
    1000
    \"""

{fields}

    def __init__(self, **limits: Unpack[LimitsArguments]) -> None:
        \"""Checks the limits, and uses the defaults for the others.\"""
        for name, value in limits_of(**limits).items():
            object.__setattr__(self, name, value)


# Pickles and docs should name the package, from which users import the class.
Limits.__module__ = "tallyfold"
""".strip()


def main() -> None:
    surface = json.loads(subprocess.check_output(SURFACE.split(), cwd=ROOT))
    python = Python(surface)
    files = {
        TYPESCRIPT: TypeScript(surface).text(),
        PYTHON / "_names.py": python.names_module(),
        PYTHON / "_endpoints.pyi": python.calls_module(),
        PYTHON / "_arguments.py": python.arguments_module(),
        PYTHON / "_health/results.py": python.results_module(),
        PYTHON / "codes.py": python.codes_module(),
        ERRORS: errors_page(python),
    }
    for document, name in SCHEMAS.items():
        text = subprocess.check_output([*SCHEMA.split(), document], cwd=ROOT, text=True)
        files[ROOT / f"docs/cli/{name}.schema.json"] = text
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale: run scripts/declare.py")
        sys.exit(1 if stale else 0)
    for path in stale:
        path.write_text(files[path])


class Language:
    """The common base of the writers of all languages."""

    def __init__(self, surface: dict) -> None:
        self.options = {name: of for name, of in surface["options"].items() if name not in BY_HAND}
        #: What the options of each kind are for.
        self.abouts = surface["abouts"]
        self.values = surface["values"]
        #: The kind of each error code, in the order of the documentation.
        self.kinds = surface["kinds"]
        #: Names of arguments in doc comments. Each language spells them in its own way.
        self.arguments = {of["name"] for of in self.options["MachineOptions"]}

    def names(self) -> list[tuple[str, dict]]:
        """The closed lists of names that are types of their own, without the error codes."""
        lists = [(name, of) for name, of in self.values.items() if is_list(of)]
        return [(name, of) for name, of in lists if name not in INLINED and name != "Code"]

    def meanings_of_codes(self, kind: str) -> list[tuple[str, str]]:
        """The error codes of a kind, each with its meaning in one line."""
        own = {of["name"] for options in self.options.values() for of in options}
        codes = [of for of in self.values["Code"]["oneOf"] if self.kinds[of["const"]] == kind]
        return [(of["const"], " ".join(self.doc(of["description"], own).split())) for of in codes]

    def doc(self, text: str, own: set[str] = frozenset()) -> str:
        """A doc comment without its Rust examples, with names as the language spells them.

        `own` are names of arguments in addition to those that are known everywhere.
        """
        text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
        text = re.sub(r"\[`([^`]+)`\](?:\([^)]*\))?", lambda link: self.link(link[1]), text)
        known = self.arguments | own
        spelled = lambda name: self.spelled(name[1]) if name[1] in known else name[1]
        text = re.sub(r"`([a-z_]+)`", lambda name: f"`{spelled(name)}`", text)
        return text.strip()

    def argument_doc(self, of: dict, own: set[str] = frozenset()) -> str:
        text = self.doc(of["doc"], own)
        default = usual(of)
        if of["unit"] == "milliseconds":
            text += f" In {self.UNIT}."
            default = default and self.time(default)
        elif of["unit"] == "seconds":
            text += " In seconds."
        if of["kind"] == "Patience":
            usually = ", the default," if of["endless"] else ""
            text += f" `{self.ENDLESS}`{usually} for no limit."
        return f"{text} Default: `{default}`." if default else text

    def field_doc(self, key: str, schema: dict) -> str:
        """The meaning of a field of a value, with the unit if the field is a time."""
        text = self.doc(schema.get("description", ""))
        return f"{text} In {self.UNIT}." if key.endswith("Ms") and "milliseconds" not in text else text

    def time(self, milliseconds: str) -> str:
        """A time in the unit of the language."""
        return milliseconds

    def link(self, to: str) -> str:
        raise NotImplementedError

    def spelled(self, name: str) -> str:
        raise NotImplementedError


class TypeScript(Language):
    """The declarations of the npm package."""

    UNIT, ENDLESS = "milliseconds", "Infinity"
    WHOLE: ClassVar[dict[str, str]] = {"uint16": "number", "uint32": "number", "uint64": "bigint", "int128": "bigint"}

    def text(self) -> str:
        imports = 'import type { Url } from "./host.js";\nimport type { Instant, TimeStep } from "./time.js";'
        parts = [f"// {NOTICE}", imports, self.codes()]
        pairs = "".join(f'  {name}: "{variable}",\n' for name, variable in variables(self))
        about = "The arguments of a client that may come from the environment, and their variables."
        parts.append(f"/** {about} */\nexport const environment = {{\n{pairs}}} as const;")
        parts += [self.union(name, of) for name, of in self.names()]
        parts += [self.value(name, of) for name, of in self.values.items() if not is_list(of)]
        parts += [self.interface(name, of) for name, of in self.options.items()]
        return "\n\n".join(part for part in parts if part) + "\n"

    def codes(self) -> str:
        codes = "".join(f'  "{name}",\n' for name in names_of(self.values["Code"]))
        doc = (
            "Every code that {@link TallyfoldError.code} can have: a closed list, the same in every language.\n\n"
            '@example\nconst known = errorCodes.includes("rate_limited"); // true'
        )
        return (
            f"{comment(doc)}\nexport const errorCodes = [\n{codes}] as const;\n\n"
            f"{comment(self.about_codes())}\n"
            "export type ErrorCode = (typeof errorCodes)[number];"
        )

    def about_codes(self) -> str:
        """The meaning of each error code, grouped by kind."""
        parts = ["What went wrong: one of {@link errorCodes}."]
        for kind, about in KINDS.items():
            meanings = [f"`{code}`: {meaning}" for code, meaning in self.meanings_of_codes(kind)]
            parts += [f"Codes of kind `{kind}`: {about[0].lower()}{about[1:]}", "\n".join(meanings)]
        return "\n\n".join(parts)

    def union(self, name: str, schema: dict) -> str:
        head = comment(self.doc(schema["description"]) + "\n\n" + self.meanings(schema))
        declared = RENAMED.get(name, name)
        return f"{head}\n{statement(f'export type {declared} =', quoted(schema))}"

    def meanings(self, schema: dict) -> str:
        return "\n".join(f"`{of['const']}`: {self.doc(of['description'])}" for of in schema["oneOf"])

    def value(self, name: str, schema: dict) -> str:
        if name in CLASSES:
            return ""
        name = RENAMED.get(name, name)
        head = comment(self.doc(schema["description"]).replace("`None`", "`null`"))
        if "oneOf" in schema:
            options = "\n  | ".join(self.variant(of) for of in schema["oneOf"])
            return f"{head}\nexport type {name} =\n  | {options};"
        return f"{head}\nexport interface {name} {self.fields(name, schema)}"

    def variant(self, schema: dict) -> str:
        fields = [f"readonly {key}: {self.type(of)}" for key, of in schema["properties"].items()]
        line = "{ " + "; ".join(fields) + " }"
        return line if len(line) <= 90 else "{\n      " + ";\n      ".join(fields) + ";\n    }"

    def fields(self, name: str, schema: dict) -> str:
        required = schema.get("required", [])
        lines = ["{"]
        for key, of in schema["properties"].items():
            text = self.field_doc(key, of).replace("`None`", "absent")
            lines.append(comment(text, "  "))
            optional = "" if key in required else "?"
            lines.append(f"  readonly {key}{optional}: {self.type(of, key in required)};")
        if name == "Check":
            lines += [comment(STATE, "  "), "  readonly state: string;"]
        return "\n".join([*lines, "}"])

    def type(self, schema: dict, nullable: bool = True) -> str:
        if "const" in schema:
            return f'"{schema["const"]}"'
        if schema.get("format") == "step":
            return "TimeStep"
        if "$ref" in schema:
            return self.referred(schema["$ref"].rsplit("/", 1)[1])
        if "anyOf" in schema:
            inner = next(of for of in schema["anyOf"] if of.get("type") != "null")
            return self.type(inner)
        if schema["type"] == "array":
            return f"readonly {self.type(schema['items'])}[]"
        if "additionalProperties" in schema:
            return f"Readonly<Record<string, {self.type(schema['additionalProperties'])}>>"
        kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        kind = {"string": "string", "number": "number", "boolean": "boolean"}.get(kinds[0])
        kind = kind or self.WHOLE[schema["format"]]
        return f"{kind} | null" if "null" in kinds and nullable else kind

    def referred(self, name: str) -> str:
        if name == "Code":
            return "ErrorCode"
        if name in INLINED:
            return INLINED[name] or quoted(self.values[name])
        return RENAMED.get(name, name)

    def interface(self, name: str, arguments: list[dict]) -> str:
        declared = name.replace("Options", "Arguments")
        lines = [f"export interface {declared} {{"]
        own = {of["name"] for of in arguments}
        for of in arguments:
            lines.append(comment(self.argument_doc(of, own), "  "))
            optional, undefined = ("", "") if is_required(of) else ("?", " | undefined")
            field, given = f"  readonly {self.spelled(of['name'])}{optional}:", f"{self.given(of)}{undefined}"
            if len(f"{field} {given};") > 100:
                given = "".join(f"\n    | {one}" for one in given.split(" | "))
                lines.append(f"{field}{given};")
            else:
                lines.append(f"{field} {given};")
        head = comment(self.doc(self.abouts[name], own))
        return "\n".join([head, *lines, "}"])

    def given(self, of: dict) -> str:
        rust = re.sub(r"^Option<(.*)>$", r"\1", of["rust"])
        match of["kind"]:
            case "Text" if rust in self.values:
                return self.referred(rust)
            case "Text" | "Secret":
                return "string"
            case "Address":
                return "string | Url"
            case "Mapping":
                return "Readonly<Record<string, string>> | Iterable<readonly string[]>"
            case "Texts":
                return "readonly Tolerance[]" if rust == "Tolerate" else "readonly string[]"
            case "Instant":
                return "Instant"
            case "Window":
                return "{ readonly start: Instant; readonly end: Instant }"
            case "Step":
                return '"windows" | "total" | TimeStep' if rust == "Keep" else "TimeStep"
            case "Flag":
                return "boolean"
            case "Whole":
                # Counts and seeds may be above 2^53.
                return "number | bigint" if of["name"] in ("seed", "count") else "number"
            case "Milliseconds" | "Patience":
                return "number"
            case "Pair":
                return "readonly [index: number, of: number]"
            case "Nested":
                return rust
        raise ValueError(f"no type for {of}")

    def link(self, to: str) -> str:
        return f"{{@link {to.replace('::', '.')}}}"

    def spelled(self, name: str) -> str:
        first, *rest = name.removesuffix("_s").split("_")
        return first + "".join(part.capitalize() for part in rest)


class Python(Language):
    """The declarations of the PyPI package."""

    UNIT, ENDLESS = "seconds", "None"

    #: The lists of names that the package declares: the name in Rust, and the name in the package.
    LISTS: ClassVar = {
        "AdditivityVerdict": "AdditivityVerdict",
        "Api": "ApiName",
        "CountName": "CountName",
        "Dimension": "DimensionName",
        "SandboxEndpoint": "EndpointName",
        "Code": "ErrorCode",
        "FaultKind": "FaultKind",
        "Format": "ExportFormat",
        "Guarantee": "Guarantee",
        "IncidentChange": "IncidentChange",
        "Measure": "Measure",
        "Metric": "MetricName",
        "NoteKind": "NoteKind",
        "Presence": "Presence",
        "RankBy": "RankBy",
        "ReceiverKind": "ReceiverKind",
        "RuleKind": "RuleKind",
        "Scene": "Scene",
        "Severity": "Severity",
        "Status": "Status",
        "Target": "TargetName",
        "Tolerance": "Tolerance",
        "Windows": "ExportWindows",
    }
    #: The types of the results of calls to endpoints.
    OUTPUTS: ClassVar = {"CountTable": "CountTable", "Json": "bytes"}
    #: Names that only the package knows, because it implements them itself.
    MORE: ClassVar[dict[str, list[str]]] = {"Format": ["parquet", "arrow"]}
    #: For each type of options: the type in the package, what accepts it, and the arguments to leave out, because they are in the
    #: signature or are not accepted.
    TAKERS: ClassVar = {
        "Limits": ("LimitsArguments", "Limits", []),
        "AggregatorOptions": ("AggregatorArguments", "Aggregator", ["group_by"]),
        "MachineOptions": ("MachineArguments", "Machine", []),
        "CollectOptions": (
            "CollectArguments",
            "Client.collect",
            ["metric", "start", "end", "dimensions"],
        ),
        "ExplainOptions": ("ExplainArguments", "explain", []),
        "ExportOptions": ("ExportArguments", "export", ["format", "labels"]),
        "FollowOptions": ("FollowArguments", "Client.follow", ["metric", "start", "dimensions"]),
        "NotifyOptions": ("NotifyArguments", "notify", []),
        "ReceiverOptions": ("ReceiverArguments", "notify", []),
        "PagesOptions": ("PagesArguments", "asgi.PageServer", []),
        "PushOptions": ("PushArguments", "push", ["url"]),
        "SandboxOptions": ("SandboxArguments", "Sandbox", []),
        "SandboxEvent": ("EventArguments", "Sandbox.record", ["timestamp", "outcome"]),
        "FaultOptions": ("FaultArguments", "Sandbox.inject", ["kind"]),
    }
    #: Results that are declared as classes, each with an example. A class comes after the classes that it contains. The classes of
    #: other results are written by hand.
    RESULTS: ClassVar = {
        "Amount": """
            >>> tallyfold.explain(table, table, "error_rate").now
            Amount(part=1, whole=8)
        """,
        "Cause": """
            >>> for at, failed in [("2026-01-01T00:20:00Z", 3), ("2026-01-01T00:35:00Z", 63)]:
            ...     for name, errors in [("crm", 3), ("email", failed), ("warehouse", 3)]:
            ...         sandbox.record(at, "success", integration=name, count=1000, **event)
            ...         sandbox.record(at, "errors", integration=name, count=errors, **event)
            >>> edges = [f"2026-01-01T00:{minute}:00Z" for minute in (15, 30, 45)]
            >>> before = client.event_delivery(*edges[:2], ["integration"])
            >>> now = client.event_delivery(*edges[1:], ["integration"])
            >>> (cause,) = tallyfold.explain(before, now, "errors").causes
            >>> cause.where, cause.events
            ({'integration': 'email'}, 60)
        """,
        "Explanation": """
            >>> tallyfold.explain(table, table, "errors").change
            0
        """,
        "Query": """
            >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
            >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
            >>> (finding,) = rules.check(delivery=table, now="2026-01-01T01:00:00Z").findings
            >>> query = finding.query
            >>> rows = client.event_delivery(query.start, query.end, query.dimensions)
            >>> rows.filter(**query.where).totals.errors
            1
        """,
        "Finding": """
            >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
            >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
            >>> (finding,) = rules.check(delivery=table, now="2026-01-01T01:00:00Z").findings
            >>> finding.rule, finding.status, finding.observed
            ('errors', 'firing', Amount(part=1, whole=None))
        """,
        "IncidentEvent": """
            >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
            >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
            >>> check = rules.check(delivery=table, now="2026-01-01T01:00:00Z")
            >>> [event.change for event in check.incidents[0].history]
            ['began']
        """,
        "IncidentHold": """
            >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
            >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
            >>> check = rules.check(delivery=table, now="2026-01-01T01:00:00Z")
            >>> state = tallyfold.acknowledge(check.state, check.incidents[0].id, note="known")
            >>> later = rules.check(delivery=table, state=state, now="2026-01-01T01:00:00Z")
            >>> later.incidents[0].hold, later.healthy
            (IncidentHold(until=None, note='known'), True)
        """,
        "IncidentPart": """
            >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
            >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
            >>> check = rules.check(delivery=table, now="2026-01-01T01:00:00Z")
            >>> [part.rule for part in check.incidents[0].parts]
            ['errors']
        """,
        "Incident": """
            >>> rule = "{ name = 'errors', kind = 'threshold', measure = 'errors', above = 0 }"
            >>> rules = tallyfold.Rules.parse(f"rule = [{rule}]")
            >>> check = rules.check(delivery=table, now="2026-01-01T01:00:00Z")
            >>> (incident,) = check.incidents
            >>> incident.status, incident.headline == check.findings[0].id
            ('firing', True)
        """,
        "Unjudged": """
            >>> tallyfold.Rules.standard().check().unjudged[0]
            Unjudged(rule='integration fails', reason='there are no counts of event_delivery')
        """,
        "Check": """
            >>> tallyfold.Rules.standard().check(delivery=table, now="2026-01-01T01:00:00Z").healthy
            True
        """,
        "Replay": """
            >>> rules = tallyfold.Rules.standard()
            >>> day = rules.replay("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", delivery=table)
            >>> day.range
            Window('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z')
        """,
        "Receipt": """
            >>> chat = httpx2.MockTransport(lambda request: httpx2.Response(200, text="ok"))
            >>> receiver = {"kind": "slack", "name": "team", "url": "https://hooks.example/T0"}
            >>> check = tallyfold.Rules.standard().check(delivery=table)
            >>> tallyfold.notify(check, [receiver], transport=chat).receivers[0].messages
            0
        """,
        "ErrorBudget": """
            >>> budget = tallyfold.Rules.standard().budgets()[0]
            >>> budget.rule, budget.share
            ('delivery budget', 0.05)
        """,
        "Need": """
            >>> need = tallyfold.Rules.standard().needs()[0]
            >>> need.metric, need.window
            ('event_delivery', '15m')
        """,
        "Usual": """
            >>> tallyfold.usual(table, "errors", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z")
            []
        """,
    }
    #: The field that the packages add to a result: its name, its type and its meaning.
    ADDED: ClassVar[dict[str, tuple[str, str, str]]] = {"Check": ("state", 'str = ""', STATE)}
    #: The arguments of a machine that a client sets itself.
    NOT_OF_CLIENTS: ClassVar[list[str]] = ["host_tokens", "in_browser", "dangerously_allow_browser"]
    #: The argument that the Python client passes to the core as an object.
    HAVE = (
        "    have: CountTable | None\n"
        '    """A table that holds some of the range already: only its gaps are read, and the windows\n'
        '    that are provisional in it. Windows that lie outside of the range, or partly, are ignored."""'
    )

    def __init__(self, surface: dict) -> None:
        super().__init__(surface)
        self.options = surface["options"]
        self.endpoints = surface["endpoints"]
        self.arguments = {of["name"] for options in self.options.values() for of in options}

    def names_module(self) -> str:
        verdicts = [of["properties"]["verdict"] for of in self.values["Reconciliation"]["oneOf"]]
        unions = [
            self.literal(name, names_of(self.values[rust]) + self.MORE.get(rust, []), self.values[rust]["description"]) for rust, name in self.LISTS.items()
        ]
        about = self.values["Reconciliation"]["description"]
        unions.append(self.literal("Verdict", [of["const"] for of in verdicts], about))
        return (
            "\n\n".join(
                [
                    f'"""Closed lists of names.\n\n{NOTICE}\n"""',
                    "from typing import Literal",
                    exported([*self.LISTS.values(), "Verdict"]),
                    *unions,
                ]
            )
            + "\n"
        )

    def calls_module(self) -> str:
        calls = "\n".join(self.call(endpoint) for endpoint in self.endpoints)
        aliases = [name for name in ("Dimensions", "Instant", "Step") if re.search(rf"\b{name}\b", calls)]
        return (
            f"# The calls of a machine to endpoints, as types.\n#\n# {NOTICE}\n\n"
            f"from tallyfold._arguments import {', '.join(aliases)}\n"
            "from tallyfold._tallyfold import Call, CountTable\n\n"
            f"# The calls of a `Machine`, whose methods are in Rust.\nclass Calls:\n{calls}\n"
        )

    def call(self, endpoint: dict) -> str:
        """The method of a machine. The last argument, the deadline, is keyword-only."""
        arguments = [
            f"        {self.spelled(of['name'])}: {self.given(of)}{'' if is_required(of) else ' = None'},\n" for of in self.options[endpoint["options"]]
        ]
        arguments.insert(-1, "        *,\n")
        output = self.OUTPUTS[endpoint["output"]]
        return f"    def {endpoint['name']}(\n        self,\n{''.join(arguments)}    ) -> Call[{output}]: ..."

    def codes_module(self) -> str:
        parts, meanings = [], []
        for kind, about in KINDS.items():
            parts.append(f"Codes of `{kind.capitalize()}Error` (kind `{kind}`): {about[0].lower()}{about[1:]}")
            for code, meaning in self.meanings_of_codes(kind):
                parts.append(f"`{code}`: {meaning}")
                line = f'    "{code}": {json.dumps(meaning)},'
                if len(line) > 100:
                    lines = textwrap.wrap(meaning, 90, drop_whitespace=False)
                    inner = "\n".join(f"        {json.dumps(one)}" for one in lines)
                    line = f'    "{code}": (\n{inner}\n    ),'
                meanings.append(line)
        about = "What each error code means: `TallyfoldError.code` is one of these."
        text = docstring("\n\n".join([about, *parts, NOTICE]))
        return (
            f"{text}\n\nfrom typing import Final\n\nfrom tallyfold._names import ErrorCode\n\n"
            '__all__ = ["MEANINGS"]\n\nMEANINGS: Final[dict[ErrorCode, str]] = {\n' + "\n".join(meanings) + '\n}\n"""Every code with its meaning."""\n'
        )

    def literal(self, name: str, names: list[str], about: str) -> str:
        inner = ", ".join(f'"{one}"' for one in names)
        line = f"{name} = Literal[{inner}]"
        if len(line) > 100:
            line = f"{name} = Literal[\n    {inner}\n]"
        if len(inner) > 96:
            line = f"{name} = Literal[\n" + "".join(f'    "{one}",\n' for one in names) + "]"
        return f"{line}\n{docstring(self.doc(about))}"

    def arguments_module(self) -> str:
        declared = sorted({"ClientArguments", *(name for name, _, _ in self.TAKERS.values())})
        classes = []
        for rust, (name, taker, others) in self.TAKERS.items():
            arguments = [of for of in self.options[rust] if of["name"] not in others]
            base = {"PushOptions": "ExportArguments"}.get(rust, "TypedDict")
            if rust == "MachineOptions":
                of_client = [of for of in arguments if of["name"] not in self.NOT_OF_CLIENTS]
                base = "ClientArguments"
                classes.append(self.typed_dict(base, "TypedDict", "Client", of_client))
                arguments = [of for of in arguments if of not in of_client]
            classes.append(self.typed_dict(name, base, taker, arguments))
            if taker == "Limits":
                classes.append(self.limits())
        return (
            "\n\n".join(
                [
                    f'"""Arguments by their names, as types.\n\n{NOTICE}\n"""',
                    (
                        "from collections.abc import Iterator, Mapping, Sequence\nfrom dataclasses import dataclass\n"
                        "from datetime import datetime, timedelta\nfrom typing import Protocol, Required, TypedDict, Unpack"
                    ),
                    (
                        "from tallyfold._names import (\n    DimensionName,\n    EndpointName,\n    ExportWindows,\n    Guarantee,\n"
                        "    MetricName,\n    Scene,\n    Tolerance,\n)\nfrom tallyfold._tallyfold import CountTable, limits_of"
                    ),
                    exported(["ENVIRONMENT", *declared, "Dimensions", "Instant", "Limits", "Step", "Texts"]),
                    self.environment(),
                    f"\n{TEXTS}",
                    ('Dimensions = Sequence[DimensionName] | Texts\n"""Names of dimensions. Any `Sequence[str]` will do; editors complete the known ones."""'),
                    'Instant = datetime | str\n"""An aware `datetime`, or ISO 8601 text with `Z` or an offset from UTC."""',
                    ('Step = str | timedelta\n"""What divides a day: digits and one of `s`, `m`, `h` and `d`, or whole seconds."""'),
                ]
            )
            + "".join(f"\n\n\n{of}" for of in classes)
            + "\n"
        )

    def limits(self) -> str:
        """The class of limits, which has its arguments as fields."""
        docs = {of["name"]: self.doc(of["doc"]) for of in self.options["Limits"]}
        arguments = [textwrap.fill(f"{name}: {doc[0].lower()}{doc[1:]}", 100, initial_indent=" " * 8, subsequent_indent=" " * 12) for name, doc in docs.items()]
        fields = [f"    {name}: int\n{docstring(doc, '    ')}" for name, doc in docs.items()]
        return LIMITS.format(about=self.abouts["Limits"].strip(), arguments="\n".join(arguments), fields="\n".join(fields))

    def results_module(self) -> str:
        names = sorted(self.LISTS[name] for name in self.referred(self.RESULTS) if name in self.LISTS)
        imported = "from tallyfold._names import (\n" + "".join(f"    {name},\n" for name in names) + ")"
        if "Window" in self.referred(self.RESULTS):
            imported += "\nfrom tallyfold._time import Window"
        return (
            "\n\n".join(
                [
                    f'"""Results of health, as values.\n\n{NOTICE}\n"""',
                    "from dataclasses import dataclass",
                    imported,
                    exported(list(self.RESULTS)),
                ]
            )
            + "".join(f"\n\n\n{self.result(name)}" for name in self.RESULTS)
            + (
                "\n\n\n# Pickles and docs should name the package, from which users import the classes.\n"
                "for _class in (\n" + "".join(f"    {name},\n" for name in self.RESULTS) + "):\n"
                '    _class.__module__ = "tallyfold"\n'
            )
        )

    def result(self, name: str) -> str:
        """A class with the fields of a value, in their order."""
        schema = self.values[name]
        example = textwrap.dedent(self.RESULTS[name]).strip()
        lines = ["@dataclass(frozen=True, slots=True)", f"class {name}:"]
        lines.append(docstring(self.doc(schema["description"]), "    ", example) + "\n")
        for key, of in schema["properties"].items():
            optional = key not in schema.get("required", [])
            lines.append(f"    {self.attribute(key)}: {self.result_type(of, optional)}")
            lines.append(docstring(self.field_doc(key, of), "    "))
        if name in self.ADDED:
            field, kind, about = self.ADDED[name]
            lines += [f"    {field}: {kind}", docstring(about, "    ")]
        return "\n".join(lines)

    def attribute(self, key: str) -> str:
        """The name of a field in Python. It has no suffix for milliseconds, because times are in seconds."""
        return self.spelled(re.sub(r"([A-Z])", lambda letter: f"_{letter[1].lower()}", key))

    def result_type(self, schema: dict, optional: bool = False) -> str:
        if optional and "anyOf" not in schema and "null" not in schema.get("type", []):
            return f"{self.result_type(schema)} | None"
        if "const" in schema:
            return f'Literal["{schema["const"]}"]'
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            return self.LISTS.get(name, name)
        if "anyOf" in schema:
            inner = next(of for of in schema["anyOf"] if of.get("type") != "null")
            return f"{self.result_type(inner)} | None"
        if schema["type"] == "array":
            return f"list[{self.result_type(schema['items'])}]"
        if "additionalProperties" in schema:
            return f"dict[str, {self.result_type(schema['additionalProperties'])}]"
        kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        kind = {"string": "str", "number": "float", "boolean": "bool", "integer": "int"}[kinds[0]]
        return f"{kind} | None" if "null" in kinds else kind

    def referred(self, names: list[str]) -> set[str]:
        """The names of the types that the fields of values refer to."""
        fields = json.dumps([self.values[name]["properties"] for name in names])
        return set(re.findall(r'"#/\$defs/(\w+)"', fields))

    def environment(self) -> str:
        pairs = "".join(f'    "{name}": "{variable}",\n' for name, variable in variables(self))
        return f'ENVIRONMENT = {{\n{pairs}}}\n"""The arguments of a client that may come from the environment, and their variables."""'

    def typed_dict(self, name: str, base: str, taker: str, arguments: list[dict]) -> str:
        lines = [f"class {name}({base}, total=False):"]
        lines.append(f'    """Arguments of `{taker}`, by name."""\n')
        for of in arguments:
            kind = self.given(of)
            kind = f"Required[{kind}]" if is_required(of) else kind
            lines.append(f"    {self.spelled(of['name'])}: {kind}")
            lines.append(docstring(self.argument_doc(of), "    "))
        if taker == "Client.collect":
            lines.append(self.HAVE)
        return "\n".join(lines)

    def time(self, milliseconds: str) -> str:
        return f"{int(milliseconds.replace(',', '')) / 1000:,g}"

    def given(self, of: dict) -> str:
        rust = re.sub(r"^Option<(.*)>$", r"\1", of["rust"])
        kind = self.kind(of, rust)
        if of["kind"] == "Nested":
            return f"{kind} | None"
        return kind if rust == of["rust"] else f"{kind} | None"

    def kind(self, of: dict, rust: str) -> str:
        match of["kind"]:
            case "Text" | "Secret" | "Address":
                return self.LISTS.get(rust, "str")
            case "Mapping":
                return "Mapping[str, str]"
            case "Texts":
                return "Sequence[Tolerance]" if rust == "Tolerate" else "Dimensions"
            case "Instant":
                return "Instant"
            case "Window":
                return "tuple[Instant, Instant]"
            case "Step":
                return "Step"
            case "Flag":
                return "bool"
            case "Whole":
                return "int"
            case "Milliseconds":
                return "float"
            case "Patience":
                return "float | None"
            case "Pair":
                return "tuple[int, int]"
            case "Nested":
                return rust
        raise ValueError(f"no type for {of}")

    def link(self, to: str) -> str:
        return f"`{to.replace('::', '.')}`"

    def spelled(self, name: str) -> str:
        return name.removesuffix("_ms").removesuffix("_s")


def errors_page(language: Language) -> str:
    """A page of the documentation about all error codes."""
    lines = [
        "# Error codes",
        "",
        f"<!-- {NOTICE} -->",
        "",
        "Every error has a `code` and a `kind`. The list of codes is closed and the same in every language.",
        "Python has a class for each kind; JavaScript has one class, `TallyfoldError`, with a property `kind`.",
        "This page spells the names of arguments as Python does; JavaScript spells them in camelCase.",
    ]
    for kind, about in KINDS.items():
        lines += ["", f"## {kind}: `{kind.capitalize()}Error`", "", about, "", "| code | meaning |", "|---|---|"]
        lines += [f"| `{code}` | {meaning} |" for code, meaning in language.meanings_of_codes(kind)]
    return "\n".join(lines) + "\n"


def exported(names: list[str]) -> str:
    """The `__all__` of a Python module."""
    return "__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(names, key=lambda name: (not name.isupper(), name))) + "]"


def docstring(text: str, indent: str = "", example: str = "") -> str:
    """A docstring of paragraphs, followed by the lines of an example."""
    if not example and "\n\n" not in text and len(line := " ".join(text.split())) + len(indent) <= 94:
        return f'{indent}"""{line}"""'
    first, *others = text.split("\n\n")
    lines = textwrap.wrap('"""' + " ".join(first.split()), 100 - len(indent))
    for paragraph in others:
        lines += ["", *textwrap.wrap(" ".join(paragraph.split()), 100 - len(indent))]
    if example:
        lines += ["", *example.split("\n")]
    lines.append('"""')
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


def variables(language: Language) -> list[tuple[str, str]]:
    """The arguments of a client that have an environment variable, each with its variable."""
    arguments = [of for of in language.options["MachineOptions"] if of["variable"]]
    return [(language.spelled(of["name"]), of["variable"]) for of in arguments]


def is_list(schema: dict) -> bool:
    return all("const" in of for of in schema.get("oneOf", [{}]))


def names_of(schema: dict) -> list[str]:
    return [of["const"] for of in schema["oneOf"]]


def quoted(schema: dict) -> str:
    return " | ".join(f'"{name}"' for name in names_of(schema))


def is_required(of: dict) -> bool:
    """Whether a call without the argument is refused."""
    return of["required"]


def usual(of: dict) -> str | None:
    """The default as text, if the crates declare one."""
    default = of["default"]
    return f"{default:,}" if isinstance(default, int) else default or None


def statement(head: str, rest: str) -> str:
    """A statement on one line, or on several lines as the formatter breaks it."""
    line = f"{head} {rest};"
    if len(line) <= 100:
        return line
    return f"{head}\n  | " + rest.replace(" | ", "\n  | ") + ";"


def comment(text: str, indent: str = "") -> str:
    """A doc comment of paragraphs; lines after an `@example` stay as they are."""
    prose, example, code = text.partition("@example\n")
    lines: list[str] = []
    for paragraph in prose.strip().split("\n\n"):
        if lines:
            lines.append("")
        listed = paragraph.startswith("`") and "`: " in paragraph
        for part in re.split(r"\n(?=`\w+`: )", paragraph) if listed else [paragraph]:
            lines += textwrap.wrap(" ".join(part.split()), 96 - len(indent), break_long_words=False)
    if example:
        lines += ["", "@example", *code.split("\n")]
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */"
    body = "\n".join(f"{indent} * {line}".rstrip() for line in lines)
    return f"{indent}/**\n{body}\n{indent} */"


if __name__ == "__main__":
    main()
