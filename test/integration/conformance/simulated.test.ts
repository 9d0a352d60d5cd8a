import { simulatedProvider } from '../../../providers/simulated/index.ts';
import { startApiserver } from '../../kit/apiserver.ts';
import { keepsMachines } from '../../kit/conformance/machines.ts';
import { simulatedTestbed } from '../../kit/conformance/simulated-testbed.ts';
import { FakeCluster } from '../../unit/providers/fixtures.ts';

keepsMachines('in a real API server', simulatedProvider(Date.now), async () => {
  let writes = 0;
  const server = await startApiserver({
    onRequest: ({ method }) => {
      if (method !== 'GET') writes++;
    },
  });
  // Clusters in other projects have API servers of their own.
  const other = new FakeCluster();
  return simulatedTestbed(
    (namespace) => (namespace === 'shop' ? server.client : other.client),
    () => writes + other.writes.length,
    () => server.stop(),
  );
});
