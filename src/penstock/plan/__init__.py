"""A pipeline against its checkpoints and sinks: what a start would do, as a value. Pure judgement over facts."""
