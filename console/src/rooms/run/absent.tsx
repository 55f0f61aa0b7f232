import { Empty } from '../../parts/notes';
import { Link } from '../../route/router';

export function NoSuchRun() {
  return (
    <Empty title="There is no such run">
      <p>
        It may belong to another tenant, or its time to be kept is over. <Link to="/runs">See all runs</Link>
      </p>
    </Empty>
  );
}
