"""What the codes of verbs mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "CHECKPOINT023",
        "A query has no checkpoint to show, verify or reset",
        "A query gets its checkpoint when it is started for the first time.",
    ),
    Code(
        "CHECKPOINT024",
        "A new checkpoint cannot begin there",
        "`--from earliest` is possible for every query. `--from latest`, `offsets` and a timestamp set the place in"
        " each source, which not every source can do, and which leaves the state of a stateful query behind.",
    ),
    Code(
        "CHECKPOINT025",
        "A reset was not confirmed",
        "`penstock checkpoint reset` changes what the next run does to the sinks, and asks before it does so.",
    ),
    Code("BENCH001", "An unknown workload", "`penstock bench --list` names all of them."),
    Code("BENCH002", "An unknown contender", "`penstock bench --list` names all of them."),
    Code(
        "BENCH003",
        "The results of a benchmark cannot be written",
        "The folder of `--out` is looked at before anything is measured.",
    ),
    Code("DEV005", "A topic cannot have this name", "Kafka takes letters, digits, dots, dashes and underscores."),
    Code("DEV006", "A topic cannot be made", "The broker refused it, and says why."),
    Code("DEV007", "The broker has ended by itself", "It was killed from outside, or ran out of memory or disk."),
    Code("EXPLAIN001", "An unknown code", "`penstock explain` without a code lists all of them."),
    Code("PROJECT006", "A folder is not empty", "`penstock init` never overwrites a file."),
    Code("PROJECT007", "An unknown step", "`penstock show` takes the name of a source or step."),
)
