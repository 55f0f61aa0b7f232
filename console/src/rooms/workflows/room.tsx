/** Workflows: what can be run here. */

import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { useMay } from '../../api/session';
import { useRowKeys } from '../../keyboard/rows';
import { Button } from '../../parts/button';
import { Loaded } from '../../parts/loaded';
import { Empty } from '../../parts/notes';
import { Room } from '../../parts/room';
import { Table } from '../../parts/table';
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
  useRowKeys('Workflows', 'workflow');
  return (
    <Room title="Workflows" actions={defines && <Button onClick={() => setApplying(true)}>Apply a file …</Button>}>
      <Loaded query={list}>
        {({ workflows }) =>
          workflows.length === 0 ? (
            <Empty title="No workflows yet" command="interlock workflow apply hello.yaml">
              <p>A workflow is a file: a name, what it takes, and its steps. Write one, then apply it:</p>
            </Empty>
          ) : (
            <Table
              caption="Workflows by name"
              className="workflows"
              rows={workflows}
              keyOf={(workflow) => workflow.workflow}
              columns={[
                {
                  title: 'Workflow',
                  cell: (workflow) => (
                    <>
                      <Link to={at('workflows', workflow.workflow)} className="row-link">
                        <Text of={workflow.workflow} />
                      </Link>
                      {workflow.disabled && <span className="tag warn">disabled</span>}
                    </>
                  ),
                },
                { title: 'Version', number: true, cell: (workflow) => <><span className="on-phone">version </span>{workflow.version}</> },
                { title: 'Changed', cell: (workflow) => <Ago at={workflow.updated_at} /> },
                { title: 'By', className: 'quiet', cell: (workflow) => (workflow.applied_by == null ? <span className="nothing">–</span> : <Text of={workflow.applied_by} />) },
                { title: 'Runs', cell: (workflow) => <Link to={`/runs?workflow=${encodeURIComponent(workflow.workflow)}`}>See its runs</Link> },
              ]}
            />
          )
        }
      </Loaded>
      {applying && <ApplyDialog source={FIRST} close={() => setApplying(false)} />}
    </Room>
  );
}
