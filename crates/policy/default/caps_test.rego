package interlock_test

test_a_run_has_as_many_effects_as_it_may if {
	within := changed({"run": {"writes": 1}})
	allowed := data.interlock.decision with input as within with data.config.caps.writes_per_run as 2
	allowed.verdict == "allow"
	spent := changed({"run": {"writes": 2}})
	decided := data.interlock.decision with input as spent with data.config.caps.writes_per_run as 2
	decided.verdict == "deny"
	verdict_on(spent) == "allow"
}

test_reads_are_not_counted if {
	read := changed({"action": {"effect": "read"}})
	decided := data.interlock.decision with input as read with data.config.caps.writes_per_run as 0
	decided.verdict == "allow"
}

test_model_calls_stop_where_the_money_is_spent if {
	calls := {"step": {"kind": "model"}, "workflow": {"spend_max_micros": 100}}
	rules_on(changed(object.union(calls, {"run": {"spend_micros": 100}}))) == {"spend_per_run"}
	verdict_on(changed(object.union(calls, {"run": {"spend_micros": 99}}))) == "allow"
	others := {"workflow": {"spend_max_micros": 100}, "run": {"spend_micros": 100}}
	verdict_on(changed(others)) == "allow"
}
