/** Audit: everything that happened, in a log in which tampering is found. */

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useRowKeys } from '../../keyboard/rows';
import { Button } from '../../parts/button';
import { JsonView } from '../../parts/json';
import { Loaded } from '../../parts/loaded';
import { Empty, Loading } from '../../parts/notes';
import { Room } from '../../parts/room';
import { useSettled } from '../../parts/settled';
import { Table } from '../../parts/table';
import { Id, Instant, Text } from '../../parts/text';
import { at, go, Link, useAddress, withQuery } from '../../route/router';
import { auditFilterOf, isFiltered } from './filter';
import { AuditFilterBar } from './filter-bar';
import { SignedHead } from './head';
import { auditKeyQuery, auditQuery, checkpointQuery, type AuditPage, type LoggedEntry } from './query';

export function AuditRoom() {
  const { query, path } = useAddress();
  const queries = useQueryClient();
  const filter = auditFilterOf(query);
  const before = query.get('before');
  const page = useQuery(auditQuery(filter, before === null ? undefined : Number(before)));
  const to = (from: number | undefined) => {
    const next = new URLSearchParams(query);
    if (from === undefined) next.delete('before');
    else next.set('before', String(from));
    go(withQuery(path, next));
  };
  const older = page.data?.next;
  const settled = useSettled(page.isPending, useQuery(checkpointQuery).isPending, useQuery(auditKeyQuery).isPending);
  useRowKeys('Audit', 'entry', 'main .audit summary', [
    { press: '/', does: 'Search', run: () => document.querySelector<HTMLElement>('main .filters input')?.focus() },
    { press: ']', does: 'Older entries', run: () => older != null && to(older) },
    { press: '[', does: 'Newest entries', run: () => to(undefined) },
  ]);
  return (
    <Room title="Audit" actions={<Button onClick={() => void queries.invalidateQueries({ queryKey: ['audit'] })}>Look again</Button>}>
      {settled ? (
        <>
          <SignedHead />
          <AuditFilterBar />
          <Loaded query={page} rows={10}>
            {(found) => (found.entries.length === 0 ? <Nothing page={found} filtered={isFiltered(filter)} /> : <Entries entries={found.entries} />)}
          </Loaded>
          <nav className="pager" aria-label="Pages of the log">
            {before !== null && <Button onClick={() => to(undefined)}>Newest</Button>}
            {older != null && <Button onClick={() => to(older)}>Older</Button>}
          </nav>
        </>
      ) : (
        <Loading rows={14} />
      )}
    </Room>
  );
}

function Nothing({ page, filtered }: { page: AuditPage; filtered: boolean }) {
  if (page.next != null) {
    return (
      <Empty title="Nothing on this stretch of the log">
        <p>The log is searched some way at a time. “Older” goes on from here.</p>
      </Empty>
    );
  }
  return (
    <Empty title={filtered ? 'No entry matches' : 'The log is empty'}>
      <p>{filtered ? 'Take a filter away, or look at more days.' : 'What happens stands here about a second later.'}</p>
    </Empty>
  );
}

function Entries({ entries }: { entries: LoggedEntry[] }) {
  return (
    <Table
      caption="Entries of the audit log, newest first"
      className="audit"
      rows={entries}
      keyOf={({ entry }) => entry.index}
      columns={[
        { title: '#', number: true, className: 'quiet', cell: ({ entry }) => entry.index },
        { title: 'Time', className: 'c-time', cell: ({ entry }) => <Instant at={entry.at} /> },
        { title: 'What', className: 'c-what', cell: ({ entry }) => <Text of={entry.types.join(', ')} /> },
        { title: 'By', className: 'c-by quiet', cell: ({ entry, opened }) => <Text of={opened?.actor ?? entry.initiator} /> },
        { title: 'About', cell: ({ entry }) => <About entry={entry} /> },
        { title: 'Details', className: 'c-details', cell: (logged) => <Details of={logged} /> },
      ]}
    />
  );
}

function About({ entry }: Pick<LoggedEntry, 'entry'>) {
  if (entry.run !== undefined) {
    return (
      <Link to={at('runs', entry.run)}>
        <Id of={entry.run} />
      </Link>
    );
  }
  if (entry.subject === undefined) return <span className="nothing quiet">–</span>;
  // A workflow is named, and a version numbered; all else has an id.
  return /^[a-z]{3}_[0-9a-f]{32}$/.test(entry.subject) ? <Id of={entry.subject} /> : <Text of={entry.subject} />;
}

function Details({ of: { entry, opened } }: { of: LoggedEntry }) {
  if (opened?.details === undefined) {
    if (entry.details === undefined) return <span className="nothing quiet">–</span>;
    return (
      <span className="quiet" title="The entry has a hash of it. What it stands for was erased, or is for admins only.">
        hash only
      </span>
    );
  }
  return (
    <details>
      <summary>Show</summary>
      <JsonView value={parsed(opened.details)} what={`the details of entry ${entry.index}`} />
    </details>
  );
}

/** The text that was hashed is JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
