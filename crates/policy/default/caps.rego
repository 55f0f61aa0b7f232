# Caps: how much one run may do. The smaller of the workflow's and the configured one counts.
package interlock

deny contains {"rule": "writes_per_run", "text": "the run has had as many effects as it may have"} if {
	changes_something
	count(writes_caps) > 0
	input.run.writes >= min(writes_caps)
}

writes_caps := {most | some most in [input.workflow.writes_max, data.config.caps.writes_per_run]; most != null}

deny contains {"rule": "spend_per_run", "text": "the run has spent what its model calls may cost"} if {
	input.step.kind == "model"
	count(spend_caps) > 0
	input.run.spend_micros >= min(spend_caps)
}

spend_caps := {most | some most in [input.workflow.spend_max_micros, data.config.caps.spend_per_run_micros]; most != null}
