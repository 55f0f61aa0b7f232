# Caps: how much one run may do. What a workflow itself limits (`limits.writes`) the engine counts; this is what the
# configuration limits for all of them.
package interlock

deny contains {"rule": "writes_per_run", "text": "the run has had as many effects as it may have"} if {
	changes_something
	data.config.caps.writes_per_run != null
	input.run.writes >= data.config.caps.writes_per_run
}

deny contains {"rule": "spend_per_run", "text": "the run has spent what its model calls may cost"} if {
	input.step.kind == "model"
	count(spend_caps) > 0
	input.run.spend_micros >= min(spend_caps)
}

# The smaller of the workflow's and the configured one counts.
spend_caps := {most | some most in [input.workflow.spend_max_micros, data.config.caps.spend_per_run_micros]; most != null}
