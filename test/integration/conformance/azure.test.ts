import { keepsClusters } from '../../kit/conformance/clusters.ts';
import { fakeCloudTestbed } from '../../kit/conformance/fake-cloud-testbed.ts';
import { engineFor } from '../../kit/stacks/runner.ts';

keepsClusters(`azure, by the ${engineFor('azure-native', 'managed')} engine,`, 'Standard_D2s_v5', () =>
  fakeCloudTestbed('azure'),
);
