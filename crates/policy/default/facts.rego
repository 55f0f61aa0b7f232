# What the other files ask about the action, worked out in one place.
package interlock

# Where the action happens. `data.config.profiles` places each profile; one that is not placed counts as production.
environment := "none" if {
	input.workflow.profile == null
} else := data.config.profiles[input.workflow.profile] if {
	data.config.profiles[input.workflow.profile]
} else := "unknown"

production if environment in {"prod", "unknown"}

# How far the action reaches: what the workflow declares, and what the command catalogue knows. The larger one counts.
ranks := {"low": 1, "medium": 2, "high": 3}

reach := max({ranks[input.action.blast_radius]} | command_reach)

# Something is lost that cannot be had back: declared by the workflow, or known of the command.
destructive if input.action.destructive

destructive if command_destroys

changes_something if input.action.effect != "read"

# What undoes a step because the run failed is covered by the permission of the step itself.
automatic_rollback if input.action.rollback == "automatic"
