/** One page of runs. A row is a link; on a phone it becomes a card. */

import type { RefObject } from 'react';
import type { Run } from '../../api/client';
import { State } from '../../parts/state';
import { Ago, Id, Text, Took } from '../../parts/text';
import { at, Link } from '../../route/router';

interface Props {
  rows: Run[];
  cursor: number;
  body: RefObject<HTMLTableSectionElement | null>;
}

export function RunTable({ rows, cursor, body }: Props) {
  return (
    <table className="rows runs">
      <caption className="unseen">Runs, newest first</caption>
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Run</th>
          <th scope="col">Workflow</th>
          <th scope="col">Started</th>
          <th scope="col" className="number">Took</th>
          <th scope="col">By</th>
        </tr>
      </thead>
      <tbody ref={body}>
        {rows.map((run, index) => (
          <tr key={run.run_id} className={index === cursor ? 'here' : ''}>
            <td className="c-state">
              <State of={run.state} detail={run.reason ?? run.detail} />
            </td>
            <td className="c-run">
              <Link to={at('runs', run.run_id)} className="row-link">
                {run.subject == null ? <Id of={run.run_id} /> : <Text of={run.subject} />}
              </Link>
              {run.subject != null && <Id of={run.run_id} bare />}
            </td>
            <td className="c-workflow">
              <Text of={run.workflow} /> <span className="quiet">v{run.workflow_version}</span>
            </td>
            <td className="c-started">
              <Ago at={run.created_at} />
            </td>
            <td className="c-took number">
              <Took from={run.created_at} to={run.finished_at} />
            </td>
            <td className="c-by quiet">
              <Text of={run.started_by ?? run.trigger.type} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
