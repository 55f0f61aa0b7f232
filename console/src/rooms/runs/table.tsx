/** One page of runs. A row is a link; on a phone it becomes a card. */

import type { RefObject } from 'react';
import type { Run } from '../../api/client';
import { State } from '../../parts/state';
import { Table } from '../../parts/table';
import { Ago, Id, Text, Took } from '../../parts/text';
import { at, Link } from '../../route/router';

interface Props {
  rows: Run[];
  cursor: number;
  body: RefObject<HTMLTableSectionElement | null>;
}

export function RunTable({ rows, cursor, body }: Props) {
  return (
    <Table
      caption="Runs, newest first"
      className="runs"
      rows={rows}
      keyOf={(run) => run.run_id}
      isHere={(run) => run === rows[cursor]}
      body={body}
      columns={[
        { title: 'State', className: 'c-state', cell: (run) => <State of={run.state} detail={run.reason ?? run.detail} /> },
        {
          title: 'Run',
          className: 'c-run',
          cell: (run) => (
            <>
              <Link to={at('runs', run.run_id)} className="row-link">
                {run.subject == null ? <Id of={run.run_id} /> : <Text of={run.subject} />}
              </Link>
              {run.subject != null && <Id of={run.run_id} bare />}
            </>
          ),
        },
        { title: 'Workflow', className: 'c-workflow', cell: (run) => <><Text of={run.workflow} /> <span className="quiet">v{run.workflow_version}</span></> },
        { title: 'Started', className: 'c-started', cell: (run) => <Ago at={run.created_at} /> },
        { title: 'Took', number: true, className: 'c-took', cell: (run) => <Took from={run.created_at} to={run.finished_at} /> },
        { title: 'By', className: 'c-by quiet', cell: (run) => <Text of={run.started_by ?? run.trigger.type} /> },
      ]}
    />
  );
}
