# What production demands of everything that happens there.
package interlock

deny contains {"rule": "no_way_back", "text": "production demands a rollback for everything that changes something"} if {
	production
	changes_something
	input.step.kind != "rollback"
	not input.action.reversible
}

# A profile that means production asks before every step, whatever mode the workflow declares.
ask contains {"rule": "production_asks", "text": "the profile means production, where people agree to every change"} if {
	production
	input.workflow.mode == "none"
	mode_applies
}
