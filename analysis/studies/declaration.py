"""What a study is made of: `study.yaml` and `claims.yaml` of a folder of literature/, checked.

docs/how-to/study.md explains every key. Nothing here computes; a key that is not known, a table
that is not declared or a name that is misspelt is refused, and `reading` says where it stands.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Expression = Annotated[str, Field(min_length=1)]
FiniteNumber = Annotated[float, Field(allow_inf_nan=False)]


class StudyError(ValueError):
    """A study that cannot be read or evaluated; the text is a sentence."""


class NotMeasuredError(StudyError):
    """A table that no experiment of the study gives."""


class Data(BaseModel):
    """A part of a declaration; a key that is not known is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SideBySide(Data):
    """Make columns of a column's values: of `by: mpi` come `LAM` and `MPICH`.

    With several columns in `of` the new ones are called `wall_s_LAM` and so on.
    """

    of: list[str]
    by: str
    rows: list[str]


class RowGroup(Data):
    """One row for each value of the columns `by`, with aggregates `of` each group."""

    by: list[str]
    of: dict[str, Expression]


class Join(Data):
    """Add the columns of another table where the columns `match` are equal.

    Rows without a partner are dropped. Columns that both tables have get the suffix `_joined`.
    """

    table: str
    match: list[str]


class Step(Data):
    """One change of a table: exactly one of the keys.

    `fill_down` is for tables that print a value once for several rows.
    """

    where: Expression | None = None
    derive: dict[str, Expression] | None = None
    side_by_side: SideBySide | None = None
    group: RowGroup | None = None
    join: Join | None = None
    sort: Expression | None = None
    fill_down: list[str] | None = None

    @model_validator(mode="after")
    def one_of_them(self) -> Step:
        """Refuse a step that is none or two."""
        exactly_one(self)
        return self


def exactly_one(data: BaseModel, names: tuple[str, ...] = ()) -> None:
    """Raise ValueError unless exactly one of the keys is given."""
    every = names or tuple(type(data).model_fields)
    given = [name for name in every if getattr(data, name) is not None]
    if len(given) != 1:
        have = f"it has {' and '.join(given)}" if given else "it has none"
        raise ValueError(f"give exactly one of {', '.join(every)}; {have}")


class Today(Data):
    """How a campaign gives the same columns: an experiment, its rows, an expression for each.

    Columns that are not floating-point numbers say which cell a row is. `steps` follow in each
    round by itself; what they take away, such as a message's size, may be part of a cell too.
    """

    experiment: str
    where: Expression | None = None
    columns: dict[str, Expression]
    steps: list[Step] = []


class Relation(Data):
    """A CSV file of the report, or another table, after `steps`.

    With `today` alone the report prints nothing of it, as of what it quotes from elsewhere.
    """

    file: str | None = None
    of: str | None = None
    columns: dict[str, Expression] | None = None
    steps: list[Step] = []
    today: Today | None = None

    @model_validator(mode="after")
    def one_origin(self) -> Relation:
        """Refuse a table without an origin, or with two."""
        if self.today is None or self.file or self.of:
            exactly_one(self, ("file", "of"))
        if self.of and (self.columns or self.today):
            raise ValueError("columns and today cannot be combined with of")
        return self


class StudyExperiment(Data):
    """What measures a part of the report today: ReFrame's check, and the names to choose by."""

    check: str
    choose: Expression
    nodes: Annotated[int, Field(ge=1)] = 1
    tier: Literal["quick", "paper"] = "quick"
    difference: str


class Standing(Data):
    """What stands for an implementation of the report today: the first pattern that fits.

    `image` is what `make study` measures for it; without one it is left out unless IMAGES names it.
    """

    implementations: Annotated[list[str], Field(min_length=1)]
    image: str | None = None
    because: str


class DrawnFigure(Data):
    """A drawing: `up` over `across`, a line for each value of the columns `lines`."""

    across: str
    up: str
    lines: list[str] = []
    where: Expression | None = None
    label: str


class Exhibit(Data):
    """A table or a figure of the report, numbered as there."""

    number: str
    title: str
    table: str | None = None
    steps: list[Step] = []
    rows: list[str] = []
    across: str | None = None
    values: dict[str, str] = {}
    figures: list[DrawnFigure] = []
    note: str | None = None
    absent: str | None = None

    @model_validator(mode="after")
    def shown_or_absent(self) -> Exhibit:
        """Refuse an exhibit that shows nothing and does not say why."""
        exactly_one(self, ("table", "absent"))
        return self


class Study(Data):
    """A report: where it is from, how it is repeated, its tables, what is shown of it."""

    title: str
    source: str
    summary: str
    site: str
    rounds: Annotated[int, Field(ge=2)]
    stands_for: dict[str, Standing] = {}
    experiments: dict[str, StudyExperiment]
    tables: dict[str, Relation]
    exhibits: list[Exhibit]

    @model_validator(mode="after")
    def names_are_declared(self) -> Study:
        """Refuse a table or an experiment that is named and not declared."""
        for name, table in self.tables.items():
            self.known(table.of, f"tables.{name}.of")
            self.steps_known(table.steps, f"tables.{name}.steps")
            if table.today and table.today.experiment not in self.experiments:
                raise ValueError(
                    f"tables.{name}.today.experiment: {table.today.experiment} is not declared; "
                    f"experiments has {', '.join(self.experiments)}"
                )
        for exhibit in self.exhibits:
            self.known(exhibit.table, f"exhibits, {exhibit.number}, table")
            self.steps_known(exhibit.steps, f"exhibits, {exhibit.number}, steps")
        return self

    def checks(self) -> str:
        """Return the expression that chooses the checks of all experiments."""
        return "|".join(dict.fromkeys(one.choose for one in self.experiments.values()))

    def images(self) -> list[str]:
        """Return the implementations to measure; none means those of the site."""
        return [one.image for one in self.stands_for.values() if one.image]

    def known(self, table: str | None, where: str) -> None:
        """Raise ValueError for the name of an unknown table."""
        if table is not None and table not in self.tables:
            raise ValueError(
                f"{where}: {table} is not a table; the tables are {', '.join(self.tables)}"
            )

    def steps_known(self, steps: list[Step], where: str) -> None:
        """Raise ValueError for a join with an unknown table."""
        for step in steps:
            if step.join:
                self.known(step.join.table, f"{where}, join")


class Quantity(Data):
    """A number of a table after steps, or of other quantities.

    With `each` it has a number for each value of these columns, a cell, so that the noise of one
    cell is not taken for another's; with several expressions in `value` a cell has several.
    """

    of: str | None = None
    from_: list[str] | None = Field(None, alias="from")
    where: Expression | None = None
    steps: list[Step] = []
    each: Annotated[list[str], Field(min_length=1)] | None = None
    value: Expression | Annotated[list[Expression], Field(min_length=2)]
    scale: Literal["linear", "ratio"] = "linear"
    label: str | None = None

    @model_validator(mode="after")
    def one_origin(self) -> Quantity:
        """Refuse a quantity of nothing, or of two things, and many numbers without cells."""
        exactly_one(self, ("of", "from_"))
        if self.each and self.from_:
            raise ValueError("each needs of; other quantities have no cells")
        if isinstance(self.value, list) and not self.each:
            raise ValueError("several expressions in value need each")
        return self

    def expressions(self) -> list[str]:
        """Return the expressions of its number, or of each cell's numbers."""
        return self.value if isinstance(self.value, list) else [self.value]


class Statement(Data):
    """What a claim says about one quantity, or why that cannot be computed (`untold`).

    Of a quantity with `each`, `cells` is how many of its cells are said to be so: every, some, or a
    share of them at least. A cell with several numbers is so if all of them are. `families` are the
    implementations that it takes, by the report's names; without it all that the study has.
    `reading` quotes the claim's words, such as “nearly”, for which the threshold is ours.
    """

    that: str | None = None
    cells: Literal["every", "some"] | float | None = None
    above: FiniteNumber | None = None
    below: FiniteNumber | None = None
    at_least: FiniteNumber | None = None
    at_most: FiniteNumber | None = None
    between: tuple[FiniteNumber, FiniteNumber] | None = None
    about: FiniteNumber | None = None
    within: Annotated[float, Field(gt=0)] | None = None
    equals: str | None = None
    untold: str | None = None
    families: list[str] | None = None
    reading: Expression | None = None

    @field_validator("cells", mode="before")
    @classmethod
    def known_number(cls, cells: Any) -> Any:
        """Refuse a statement that does not say how many cells."""
        number = isinstance(cells, int | float) and 0 < cells <= 1
        if not (cells in (None, "every", "some") or number):
            raise ValueError("cells: every, some, or a share above 0, of 1 at most")
        return cells

    @model_validator(mode="after")
    def one_comparison(self) -> Statement:
        """Refuse a statement that compares with nothing, or with two things."""
        exactly_one(self, ("that", "untold"))
        if self.untold is not None:
            if self.reading is not None:
                raise ValueError("reading goes with a threshold; untold has none")
            return self
        exactly_one(
            self, ("above", "below", "at_least", "at_most", "between", "about", "equals")
        )  # fmt: skip
        if (self.about is None) != (self.within is None):
            raise ValueError("about and within belong together")
        if self.between is not None and self.between[0] > self.between[1]:
            raise ValueError("between has its larger number first")
        return self


class Claim(Data):
    """A sentence of the report, what it says in numbers, and how that is tested.

    `status` and `computed` are what was found by an independent calculation when the report was
    transcribed: the tests compare every evaluation with them, and nothing else uses them.
    """

    id: str
    kind: Literal["claim", "consistency", "cited", "observation"]
    source: str
    claim: str
    status: Literal["reproduced", "partly-reproduced", "not-reproduced", "not-computable"]
    claimed: dict[str, float] = {}
    computed: dict[str, int | float | str] = {}
    note: str | None = None
    quantities: dict[str, Quantity] = {}
    report: list[Statement]
    here: list[Statement] | str

    @field_validator("claim", "source")
    @classmethod
    def not_empty(cls, text: str) -> str:
        """Refuse a claim without words."""
        if not text.strip():
            raise ValueError("is empty")
        return text

    @model_validator(mode="after")
    def readings_quote_the_claim(self) -> Claim:
        """Refuse a reading of words that the claim does not have."""
        for one in [*self.report, *(self.here if isinstance(self.here, list) else [])]:
            if one.reading is not None and one.reading not in self.claim:
                raise ValueError(f"reading: the claim does not say “{one.reading}”")
        return self

    @model_validator(mode="after")
    def quantities_are_declared(self) -> Claim:
        """Refuse a statement about, or a quantity from, a quantity that is not declared."""
        statements = [*self.report, *(self.here if isinstance(self.here, list) else [])]
        if isinstance(self.here, list) and any(one.equals is not None for one in self.here):
            raise ValueError("here: equals is for the report alone; a text has no interval")
        named = [(one.that, "report and here") for one in statements if one.that]
        for name, quantity in self.quantities.items():
            before = list(self.quantities)[: list(self.quantities).index(name)]
            for other in quantity.from_ or []:
                if other not in before and other not in self.claimed:
                    raise ValueError(f"quantities.{name}.from: {other} is not declared before it")
        for name, where in named:
            if name not in self.quantities:
                raise ValueError(f"{where}: {name} is not among the quantities")
        self.cells_are_counted(statements)
        return self

    def cells_are_counted(self, statements: list[Statement]) -> None:
        """Raise ValueError if a statement does not say for how many cells, or there are none."""
        many = {name for name, quantity in self.quantities.items() if quantity.each}
        for name, quantity in self.quantities.items():
            for other in many.intersection(quantity.from_ or []):
                raise ValueError(f"quantities.{name}.from: {other} has each, so no single number")
        for one in statements:
            if one.that in many and (one.cells is None or one.equals is not None):
                raise ValueError(
                    f"{one.that} has each, so say for how many cells: `cells: every`, `some` or a "
                    "share, with a range of numbers"
                )
            if one.cells is not None and one.that not in many:
                raise ValueError(f"cells is for a quantity with each; {one.that} has none")


class Claims(Data):
    """The content of `claims.yaml`."""

    claims: list[Claim]
