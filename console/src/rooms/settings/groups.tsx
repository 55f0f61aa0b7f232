import { useQuery } from '@tanstack/react-query';
import type { Schema } from '../../api/client';
import { Loaded } from '../../parts/loaded';
import { Empty } from '../../parts/notes';
import { Section } from '../../parts/section';
import { Table } from '../../parts/table';
import { Text } from '../../parts/text';
import { Link } from '../../route/router';
import { peopleQuery } from './query';

type Person = Schema['UserView'];

export interface Group {
  name: string;
  people: Person[];
  /** Members who may decide on approvals: the others belong to it, and cannot. */
  deciding: number;
}

/** Groups are what people say they belong to; there is no other list of them. */
export function groupsOf(people: readonly Person[]): Group[] {
  const found = new Map<string, Person[]>();
  for (const person of people) for (const group of person.groups) found.set(group, [...(found.get(group) ?? []), person]);
  const decides = (person: Person) => person.disabled_at == null && person.roles.some((role) => role === 'approver' || role === 'admin');
  return [...found]
    .map(([name, members]) => ({ name, people: members, deciding: members.filter(decides).length }))
    .toSorted((a, b) => a.name.localeCompare(b.name));
}

export function Groups() {
  const list = useQuery(peopleQuery);
  return (
    <Section about="Approvals name groups: their members with the role approver or admin decide.">
      <Loaded query={list}>
        {({ users }) => {
          const groups = groupsOf(users);
          if (groups.length === 0) {
            return (
              <Empty title="No person belongs to a group" command={'approval: { approvers: [sre], quorum: 2 }'}>
                <p>
                  Give <Link to="/settings/people">people</Link> groups, or let the identity provider send them. A workflow then asks one:
                </p>
              </Empty>
            );
          }
          return (
            <Table
              caption="Groups by name"
              rows={groups}
              keyOf={(group) => group.name}
              columns={[
                { title: 'Group', cell: (group) => <strong className="row-name"><Text of={group.name} /></strong> },
                { title: 'Members', cell: (group) => <Text of={group.people.map((person) => person.name).join(', ')} /> },
                {
                  title: 'Who can decide',
                  cell: (group) => (group.deciding === 0 ? <span className="tag warn">no member can decide</span> : `${group.deciding} can decide`),
                },
              ]}
            />
          );
        }}
      </Loaded>
    </Section>
  );
}
