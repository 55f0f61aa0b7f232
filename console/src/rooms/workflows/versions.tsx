/** The versions of a workflow, and what changed between two of them. */

import { useQuery } from '@tanstack/react-query';
import { api, must, type Schema } from '../../api/client';
import { Select } from '../../parts/form';
import { Loading, ProblemNote } from '../../parts/notes';
import { Difference } from '../../parts/difference';
import { Ago, Text } from '../../parts/text';
import { at, Link, useParam } from '../../route/router';
import { definitionQuery } from '../run/query';

export function Versions({ name, shown }: { name: string; shown: Schema['VersionDetail'] }) {
  const list = useQuery({
    queryKey: ['workflow', name, 'versions'],
    queryFn: () => must(api.GET('/api/v1/workflows/{workflow}/versions', { params: { path: { workflow: name }, query: { limit: 100 } } })),
  });
  const [asked, compareWith] = useParam('with');
  const other = comparedVersion(Number(asked), shown.version);
  const before = useQuery({ ...definitionQuery(name, other), enabled: other > 0 });
  if (list.data === undefined) return list.error === null ? <Loading /> : <ProblemNote error={list.error} />;
  return (
    <div className="versions">
      <ul className="version-list">
        {list.data.versions.map((version) => (
          <li key={version.version}>
            <Link to={`${at('workflows', name)}?tab=versions&version=${version.version}`} aria-current={version.version === shown.version ? 'true' : undefined}>
              <strong>Version {version.version}</strong>
              <span className="quiet">
                <Ago at={version.applied_at} /> {version.applied_by != null && <>by <Text of={version.applied_by} /></>}
              </span>
            </Link>
          </li>
        ))}
      </ul>
      <div>
        {other === 0 ? (
          <p className="quiet">The first version. Later ones show here what they changed.</p>
        ) : (
          <>
            <div className="bar-of-fields">
              <Select label={`Version ${shown.version}, compared with`} value={other} onChange={(event) => compareWith(event.target.value)}>
                {list.data.versions
                  .filter(({ version }) => version !== shown.version)
                  .map(({ version }) => (
                    <option key={version} value={version}>
                      version {version}
                    </option>
                  ))}
              </Select>
            </div>
            {before.data === undefined ? (
              before.error === null ? <Loading /> : <ProblemNote error={before.error} />
            ) : before.data === null ? (
              <p className="quiet">There is no version {other}.</p>
            ) : before.data.source.trimEnd() === shown.source.trimEnd() ? (
              <p className="quiet">The two files are the same.</p>
            ) : (
              <Difference before={before.data.source} after={shown.source} what={`From version ${other} to version ${shown.version}`} yaml />
            )}
          </>
        )}
      </div>
    </div>
  );
}

/** The version to compare with: the one that was asked for, else the one before; 0 where there is none. */
export function comparedVersion(asked: number, shown: number): number {
  return Number.isInteger(asked) && asked > 0 && asked !== shown ? asked : shown - 1;
}
