package interlock_test

test_a_plain_task_passes_unasked if {
	verdict_on(plain) == "allow"
	rules_on(plain) == {"nothing_objects"}
	on(plain).obligations == null
}

test_a_read_is_never_asked_about if {
	reads := changed({"workflow": {"mode": "per_step"}, "action": {"effect": "read", "blast_radius": "low"}})
	verdict_on(reads) == "allow"
}

test_a_denial_outweighs_a_question if {
	both := changed({"workflow": {"profile": "prod-standard"}, "action": {"destructive": true, "reversible": false}})
	verdict_on(both) == "deny"
	rules_on(both) == {"no_way_back"}
}

test_the_tier_follows_the_reach if {
	on(plain).tier == "medium"
	on(changed({"action": {"blast_radius": "low"}})).tier == "low"
	on(changed({"action": {"blast_radius": "high"}})).tier == "high"
	on(changed({"action": {"blast_radius": "low", "destructive": true}})).tier == "high"
}
