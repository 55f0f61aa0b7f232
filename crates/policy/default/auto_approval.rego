# Automatic approval: a step may pass unasked if whoever proposed it is sure enough, it does not reach far, and it does not
# happen in production. `not_auto_approved` says what stands against it.
package interlock

not_auto_approved contains "not approved automatically: it reaches far" if {
	reach > 2
	not plain_task
}

not_auto_approved contains "not approved automatically: it happens in production" if {
	production
	not plain_task
}

not_auto_approved contains "not approved automatically: no trusted source says how sure it is" if {
	not trusted_score
	not plain_task
}

not_auto_approved contains "not approved automatically: it is less sure than the threshold" if {
	trusted_score < threshold
}

# What the step says about its confidence counts only from a source that the configuration trusts.
trusted_score := input.step.confidence.score if input.step.confidence.source in data.config.auto_approval.trusted_sources

# The higher of the step's own threshold and the configured one.
threshold := max({data.config.auto_approval.threshold} | {own | own := input.step.confidence.threshold; own != null})

# A task is its author's own code. Where it declares no risk and no doubt, there is nothing to approve outside production.
plain_task if {
	input.step.kind == "task"
	input.step.confidence == null
	not production
	not destructive
	reach < 3
}
