import { keepsClusters } from '../../kit/conformance/clusters.ts';
import { fakeCloudTestbed } from '../../kit/conformance/fake-cloud-testbed.ts';
import { engineFor } from '../../kit/stacks/runner.ts';

keepsClusters(`aws, by the ${engineFor('aws', 'managed')} engine,`, 'm5.large', () => fakeCloudTestbed('aws'));
