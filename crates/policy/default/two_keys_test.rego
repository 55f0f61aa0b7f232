package interlock_test

test_what_reaches_far_needs_two_keys if {
	far := changed({"action": {"blast_radius": "high"}})
	rules_on(far) == {"two_keys"}
	on(far).obligations.quorum == 2
	on(far).obligations.exclude == ["starter", "author"]
	not on(far).obligations.self_approval
}

test_what_destroys_needs_two_keys if {
	rules_on(changed({"action": {"destructive": true}})) == {"two_keys"}
}

test_what_reaches_less_needs_none if {
	verdict_on(changed({"action": {"blast_radius": "medium"}})) == "allow"
}

test_a_gate_of_two_counts_and_a_gate_of_one_does_not if {
	two := changed({"action": {"blast_radius": "high"}, "step": {"gate": {"quorum": 2, "approvers": []}}})
	verdict_on(two) == "allow"
	on(two).tier == "high"
	one := changed({"action": {"blast_radius": "high"}, "step": {"gate": {"quorum": 1, "approvers": []}}})
	rules_on(one) == {"two_keys"}
}

# Of other people than those whom the configuration names it is no question at all.
test_a_gate_of_other_people_does_not_count if {
	gated := changed({"action": {"blast_radius": "high"}, "step": {"gate": {"quorum": 2, "approvers": ["friends"]}}})
	asked := data.interlock.decision with input as gated with data.config.approvers as {"none": ["sre"]}
	asked.verdict == "needs_approval"
	asked.obligations.approvers == ["sre"]
	ours := changed({"action": {"blast_radius": "high"}, "step": {"gate": {"quorum": 2, "approvers": ["sre"]}}})
	passed := data.interlock.decision with input as ours with data.config.approvers as {"none": ["sre"]}
	passed.verdict == "allow"
	anybody := changed({"action": {"blast_radius": "high"}, "step": {"gate": {"quorum": 2, "approvers": []}}})
	open := data.interlock.decision with input as anybody with data.config.approvers as {"none": ["sre"]}
	open.verdict == "needs_approval"
}
