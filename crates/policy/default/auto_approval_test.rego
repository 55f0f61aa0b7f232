package interlock_test

# A connector call in staging, in a mode that approves automatically what is sure enough.
proposed(confidence, fields) := object.union(
	changed({
		"workflow": {"mode": "critical_only", "profile": "staging-standard"},
		"step": {"kind": "connector", "confidence": confidence},
	}),
	fields,
)

sure := {"score": 0.95, "threshold": null, "source": "workflow"}

test_what_is_sure_enough_passes if {
	verdict_on(proposed(sure, {})) == "allow"
	verdict_on(proposed({"score": 0.9, "threshold": null, "source": "workflow"}, {})) == "allow"
}

test_what_is_less_sure_is_asked_about if {
	doubtful := proposed({"score": 0.89, "threshold": null, "source": "workflow"}, {})
	rules_on(doubtful) == {"not_auto_approved"}
}

test_a_step_may_raise_its_threshold_and_not_lower_it if {
	higher := proposed({"score": 0.95, "threshold": 0.99, "source": "workflow"}, {})
	verdict_on(higher) == "needs_approval"
	lower := proposed({"score": 0.5, "threshold": 0.1, "source": "workflow"}, {})
	verdict_on(lower) == "needs_approval"
}

test_only_a_trusted_source_counts if {
	untrusted := proposed({"score": 1, "threshold": null, "source": "model"}, {})
	verdict_on(untrusted) == "needs_approval"
	verdict_on(proposed(null, {})) == "needs_approval"
}

test_what_reaches_far_is_not_approved_automatically if {
	far := proposed(sure, {"action": {"blast_radius": "high"}})
	rules_on(far) == {"not_auto_approved", "two_keys"}
}

test_production_approves_nothing_automatically if {
	there := proposed(sure, {"workflow": {"profile": "prod-standard"}})
	"not_auto_approved" in rules_on(there)
}

test_a_plain_task_has_nothing_to_approve if {
	task := proposed(null, {"step": {"kind": "task"}})
	verdict_on(task) == "allow"
	doubtful := proposed({"score": 0.1, "threshold": null, "source": "workflow"}, {"step": {"kind": "task"}})
	verdict_on(doubtful) == "needs_approval"
}
