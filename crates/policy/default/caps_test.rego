package interlock_test

test_a_run_has_as_many_effects_as_it_may if {
	within := changed({"workflow": {"writes_max": 3}, "run": {"writes": 2}})
	verdict_on(within) == "allow"
	spent := changed({"workflow": {"writes_max": 3}, "run": {"writes": 3}})
	rules_on(spent) == {"writes_per_run"}
}

test_the_smaller_cap_counts if {
	spent := changed({"workflow": {"writes_max": 9}, "run": {"writes": 2}})
	decided := data.interlock.decision with input as spent with data.config.caps.writes_per_run as 2
	decided.verdict == "deny"
}

test_reads_are_not_counted if {
	verdict_on(changed({"workflow": {"writes_max": 0}, "action": {"effect": "read"}})) == "allow"
}

test_model_calls_stop_where_the_money_is_spent if {
	calls := {"step": {"kind": "model"}, "workflow": {"spend_max_micros": 100}}
	rules_on(changed(object.union(calls, {"run": {"spend_micros": 100}}))) == {"spend_per_run"}
	verdict_on(changed(object.union(calls, {"run": {"spend_micros": 99}}))) == "allow"
	others := {"workflow": {"spend_max_micros": 100}, "run": {"spend_micros": 100}}
	verdict_on(changed(others)) == "allow"
}
