# Caps: how much one run may do. What a workflow itself limits (`limits.writes`) the engine counts; this is what the
# configuration limits for all of them.
package interlock

# What was done can always be undone: a rollback is not held up.
deny contains {"rule": "writes_per_run", "text": "the run has had as many effects as it may have"} if {
	changes_something
	input.step.kind != "rollback"
	data.config.caps.writes_per_run != null
	input.run.writes >= data.config.caps.writes_per_run
}

deny contains {"rule": "spend_per_run", "text": "the run has spent what its model calls may cost"} if {
	input.step.kind == "model"
	count(spend_caps) > 0
	input.run.spend_micros >= min(spend_caps)
}

# What has no price cannot be held against a cap, so it has used it up.
deny contains {"rule": "spend_per_run", "text": "the price of something that the run has used is not known, and what it may spend is limited"} if {
	input.step.kind == "model"
	count(spend_caps) > 0
	input.run.unpriced
}

# The smaller of the workflow's and the configured one counts.
spend_caps := {most | some most in [input.workflow.spend_max_micros, data.config.caps.spend_per_run_micros]; most != null}
