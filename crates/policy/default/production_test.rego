package interlock_test

there(fields) := object.union(changed({"workflow": {"profile": "prod-standard", "mode": "per_step"}}), fields)

test_production_demands_a_way_back if {
	lost := there({"action": {"reversible": false}})
	verdict_on(lost) == "deny"
	rules_on(lost) == {"no_way_back"}
	verdict_on(there({})) == "needs_approval"
}

test_elsewhere_no_way_back_is_demanded if {
	verdict_on(changed({"workflow": {"profile": "dev-flex", "mode": "critical_only"}, "action": {"reversible": false}})) == "allow"
}

test_a_read_needs_no_way_back if {
	verdict_on(there({"action": {"reversible": false, "effect": "read"}})) == "allow"
}

test_a_rollback_needs_no_way_back if {
	undoes := there({"step": {"kind": "rollback"}, "action": {"reversible": false, "rollback": "automatic"}})
	verdict_on(undoes) == "allow"
}

test_production_asks_even_where_no_mode_is_promised if {
	rules_on(there({"workflow": {"mode": "none"}})) == {"production_asks"}
	verdict_on(changed({"workflow": {"profile": "staging-standard"}})) == "allow"
}
