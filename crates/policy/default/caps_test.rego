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

test_a_model_without_a_price_uses_up_a_cap_and_nothing_where_there_is_none if {
	asks := changed({"step": {"kind": "model"}, "run": {"spend_micros": 0, "unpriced": true}})
	decided := data.interlock.decision with input as asks with data.config.caps.spend_per_run_micros as 1000000
	decided.verdict == "deny"
	verdict_on(asks) == "allow"
	priced := changed({"step": {"kind": "model"}})
	allowed := data.interlock.decision with input as priced with data.config.caps.spend_per_run_micros as 1000000
	allowed.verdict == "allow"
}

test_a_rollback_is_not_held_up_by_the_cap if {
	undoes := changed({"step": {"kind": "rollback"}, "action": {"rollback": "automatic"}, "run": {"writes": 2}})
	decided := data.interlock.decision with input as undoes with data.config.caps.writes_per_run as 2
	decided.verdict == "allow"
}
