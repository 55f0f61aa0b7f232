/** What differs from before: from an earlier request for the same step, or else from the last run that succeeded. */

import { queryOptions } from '@tanstack/react-query';
import { api, must, type Approval, type Run } from '../../api/client';
import { wordOf } from '../../parts/state';
import { Table } from '../../parts/table';
import { Ago, Text } from '../../parts/text';
import { at, Link } from '../../route/router';
import { changes, CHANGES_MAX, type Change } from '../../text/changes';

/** What an approval is compared with: an earlier request, the last run that succeeded, or nothing. */
export type Comparison = { asked: Approval } | { last: Run } | null;

export const comparisonQuery = (approval: Approval, run: Run) =>
  queryOptions({
    queryKey: ['comparison', approval.approval],
    queryFn: async (): Promise<Comparison> => {
      const runs = run.resumed_from == null ? [run.run_id] : [run.resumed_from, run.run_id];
      const pages = approval.action == null ? [] : await Promise.all(runs.map((of) => must(api.GET('/api/v1/approvals', { params: { query: { run: of, limit: 200 } } }))));
      const asked = askedBefore(approval, pages.flatMap((page) => page.approvals));
      if (asked !== undefined) return { asked };
      const query = { workflow: run.workflow, state: ['succeeded' as const], created_before: run.created_at, limit: 1 };
      const last = (await must(api.GET('/api/v1/runs', { params: { query } }))).runs[0];
      return last === undefined ? null : { last };
    },
    staleTime: Infinity,
  });

export function Compared({ approval, run, to }: { approval: Approval; run: Run; to: Comparison | undefined }) {
  if (to == null) return null;
  return 'asked' in to ? <SinceAsked approval={approval} asked={to.asked} /> : <SinceLastRun run={run} last={to.last} />;
}

/** The newest of the earlier requests for the same step that are about an action. */
export function askedBefore(approval: Approval, others: readonly Approval[]): Approval | undefined {
  if (approval.action == null) return undefined;
  return others
    .filter((other) => other.action?.step === approval.action?.step && other.requested_at < approval.requested_at && other.approval !== approval.approval)
    .toSorted((a, b) => b.requested_at - a.requested_at)[0];
}

function SinceAsked({ approval, asked }: { approval: Approval; asked: Approval }) {
  const found = changes(asked.action, approval.action);
  return (
    <section className="compared">
      <h3>What has changed since it was last asked</h3>
      <p className="quiet">
        The request before was {wordOf(asked.state)} <Ago at={asked.resolved_at ?? asked.requested_at} />
        {found.length === 0 && ', and was about exactly the same'}.
      </p>
      <Changes of={found} before="Then" />
    </section>
  );
}

function SinceLastRun({ run, last }: { run: Run; last: Run }) {
  const found = changes(last.inputs, run.inputs);
  const sameVersion = last.workflow_version === run.workflow_version;
  return (
    <section className="compared">
      <h3>What differs from last time</h3>
      <p className="quiet">
        <Link to={at('runs', last.run_id)}>The last run that succeeded</Link> began <Ago at={last.created_at} />.{' '}
        {found.length === 0 ? 'It had the same inputs' : 'It had other inputs'}
        {sameVersion ? ', and the same version of the workflow.' : ', and another version of the workflow: '}
        {!sameVersion && (
          <Link to={`${at('workflows', run.workflow)}?tab=versions&version=${run.workflow_version}&with=${last.workflow_version}`}>
            what changed from {last.workflow_version} to {run.workflow_version}
          </Link>
        )}
      </p>
      <Changes of={found} before="Last time" />
    </section>
  );
}

function Changes({ of, before }: { of: Change[]; before: string }) {
  if (of.length === 0) return null;
  return (
    <>
      <Table
        caption="What differs, field by field"
        className="changes"
        rows={of.slice(0, CHANGES_MAX)}
        keyOf={(change) => change.path}
        columns={[
          { title: 'Field', className: 'c-field', cell: (change) => <Text of={change.path || 'all of it'} /> },
          { title: before, className: 'gone', cell: (change) => <Value of={change.before} /> },
          { title: 'Now', className: 'new', cell: (change) => <Value of={change.after} /> },
        ]}
      />
      {of.length > CHANGES_MAX && <p className="quiet">and {of.length - CHANGES_MAX} more</p>}
    </>
  );
}

function Value({ of }: { of: string | undefined }) {
  return of === undefined ? <span className="quiet">not there</span> : <code><Text of={of} /></code>;
}
