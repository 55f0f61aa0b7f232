package interlock_test

in_mode(mode, fields) := object.union(changed({"workflow": {"mode": mode}}), fields)

test_per_step_asks_before_every_change if {
	asks := in_mode("per_step", {})
	verdict_on(asks) == "needs_approval"
	rules_on(asks) == {"mode_per_step"}
}

test_per_phase_asks_where_a_phase_begins if {
	begins := in_mode("per_phase", {"step": {"begins_phase": true}})
	rules_on(begins) == {"mode_per_phase"}
	on(begins).obligations.scope == "phase"
	shown := in_mode("per_phase", {"run": {"agreed": true}})
	verdict_on(shown) == "allow"
	gated := in_mode("per_phase", {"step": {"phase_gate": {"quorum": 1, "approvers": []}}})
	verdict_on(gated) == "allow"
}

test_per_phase_asks_for_what_nobody_was_shown if {
	rules_on(in_mode("per_phase", {})) == {"mode_per_phase"}
}

test_critical_only_asks_before_critical_steps if {
	critical := in_mode("critical_only", {"step": {"critical": true}})
	rules_on(critical) == {"critical_step"}
	verdict_on(in_mode("critical_only", {})) == "allow"
}

test_a_critical_step_is_asked_about_without_a_mode if {
	rules_on(in_mode("none", {"step": {"critical": true}})) == {"critical_step"}
}

test_final_only_asks_before_the_last_step if {
	low := {"workflow": {"blast_radius": "low"}, "action": {"blast_radius": "low"}}
	last := object.union(in_mode("final_only", low), {"step": {"last": true}})
	rules_on(last) == {"mode_final_only"}
	earlier := object.union(in_mode("final_only", low), {"step": {"critical": true}})
	verdict_on(earlier) == "allow"
}

test_final_only_is_for_a_low_reach if {
	critical := in_mode("final_only", {"step": {"critical": true}})
	rules_on(critical) == {"critical_step"}
	doubtful := in_mode("final_only", {"step": {"kind": "connector"}})
	rules_on(doubtful) == {"not_auto_approved"}
}

test_a_gate_of_the_workflow_counts_as_the_question if {
	gated := in_mode("per_step", {"step": {"gate": {"quorum": 1, "approvers": []}}})
	verdict_on(gated) == "allow"
}

test_an_automatic_rollback_is_covered if {
	undoes := in_mode("per_step", {"step": {"kind": "rollback"}, "action": {"rollback": "automatic", "destructive": true}})
	verdict_on(undoes) == "allow"
	by_hand := in_mode("per_step", {"step": {"kind": "rollback"}, "action": {"rollback": "manual"}})
	verdict_on(by_hand) == "needs_approval"
}
