package interlock_test

due(fields) := on(object.union(changed({"workflow": {"mode": "per_step"}}), fields)).obligations

test_one_person_agrees_unless_more_are_wanted if {
	due({}).quorum == 1
	due({"workflow": {"quorum": 3}}).quorum == 3
	due({"workflow": {"quorum": 1}, "action": {"destructive": true}}).quorum == 2
}

test_production_is_chased_sooner if {
	due({}).escalate_after_s == 1800
	due({"workflow": {"profile": "prod-standard"}}).escalate_after_s == 600
	due({"workflow": {"escalate_after_s": 60}}).escalate_after_s == 60
	due({"workflow": {"escalate_after_s": 9999}}).escalate_after_s == 1800
}

test_an_approval_expires_after_a_day_or_sooner if {
	due({}).expires_after_s == 86400
	due({"workflow": {"expires_after_s": 3600}}).expires_after_s == 3600
	due({"workflow": {"expires_after_s": 999999}}).expires_after_s == 86400
}

test_the_starter_is_excluded if {
	due({}).exclude == ["starter"]
	due({}).self_approval
	not due({"workflow": {"profile": "prod-standard"}}).self_approval
}

test_a_workflow_names_its_approvers_where_the_configuration_does_not if {
	due({"workflow": {"approvers": ["dba"]}}).approvers == ["dba"]
}

test_a_workflow_narrows_the_configured_approvers if {
	asks := changed({"workflow": {"mode": "per_step", "approvers": ["dba", "everybody"]}})
	groups := {"none": ["sre", "dba"]}
	narrowed := data.interlock.decision with input as asks with data.config.approvers as groups
	narrowed.obligations.approvers == ["dba"]
	strangers := object.union(asks, {"workflow": {"approvers": ["everybody"]}})
	kept := data.interlock.decision with input as strangers with data.config.approvers as groups
	kept.obligations.approvers == ["sre", "dba"]
}

test_with_two_keys_an_approval_covers_one_step if {
	due({}).scope == "step"
	phase := changed({"workflow": {"mode": "per_phase"}, "step": {"begins_phase": true}, "action": {"destructive": true}})
	on(phase).obligations.scope == "step"
}
