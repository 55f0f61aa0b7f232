/** Workflows: what can be run here. */

import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { useMay } from '../../api/session';
import { Button } from '../../parts/button';
import { Empty, Loading, ProblemNote } from '../../parts/notes';
import { Ago, Text } from '../../parts/text';
import { at, Link } from '../../route/router';
import { workflowNames } from '../runs/query';
import { ApplyDialog } from './apply';

const FIRST = `name: hello
inputs:
  name: { type: string, required: true }
steps:
  - id: greet
    transform: { text: "Hello, \${{ inputs.name }}" }
`;

export function WorkflowsRoom() {
  const list = useQuery(workflowNames);
  const defines = useMay('define');
  const [applying, setApplying] = useState(false);
  return (
    <div className="room">
      <header className="room-head">
        <h1>Workflows</h1>
        {defines && (
          <div className="room-actions">
            <Button onClick={() => setApplying(true)}>Apply a file …</Button>
          </div>
        )}
      </header>
      {list.error !== null && <ProblemNote error={list.error} />}
      {list.data === undefined ? (
        list.error === null && <Loading />
      ) : list.data.workflows.length === 0 ? (
        <Empty title="No workflows yet" command="interlock workflow apply hello.yaml">
          <p>A workflow is a file: a name, what it takes, and its steps. Write one, then apply it:</p>
        </Empty>
      ) : (
        <table className="rows workflows">
          <caption className="unseen">Workflows by name</caption>
          <thead>
            <tr>
              <th scope="col">Workflow</th>
              <th scope="col" className="number">Version</th>
              <th scope="col">Changed</th>
              <th scope="col">By</th>
              <th scope="col">Runs</th>
            </tr>
          </thead>
          <tbody>
            {list.data.workflows.map((workflow) => (
              <tr key={workflow.workflow}>
                <td>
                  <Link to={at('workflows', workflow.workflow)} className="row-link">
                    <Text of={workflow.workflow} />
                  </Link>
                  {workflow.disabled && <span className="tag warn">disabled</span>}
                </td>
                <td className="number">{workflow.version}</td>
                <td>
                  <Ago at={workflow.updated_at} />
                </td>
                <td className="quiet">{workflow.applied_by == null ? 'a key' : <Text of={workflow.applied_by} />}</td>
                <td>
                  <Link to={`/runs?workflow=${encodeURIComponent(workflow.workflow)}`}>See its runs</Link>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {applying && <ApplyDialog source={FIRST} close={() => setApplying(false)} />}
    </div>
  );
}
