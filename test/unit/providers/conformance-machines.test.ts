import { simulatedProvider } from '../../../providers/simulated/index.ts';
import { keepsMachines } from '../../kit/conformance/machines.ts';
import { simulatedTestbed } from '../../kit/conformance/simulated-testbed.ts';
import { FakeCluster } from './fixtures.ts';

keepsMachines('in API servers in memory', simulatedProvider(Date.now), async () => {
  const clusters = new Map<string, FakeCluster>();
  const cluster = (namespace: string): FakeCluster => {
    const known = clusters.get(namespace) ?? new FakeCluster();
    clusters.set(namespace, known);
    return known;
  };
  return simulatedTestbed(
    (namespace) => cluster(namespace).client,
    () => [...clusters.values()].reduce((sum, { writes }) => sum + writes.length, 0),
    async () => {},
  );
});
