import { local } from '../../../providers/local/index.ts';
import { simulatedProvider } from '../../../providers/simulated/index.ts';
import { directoryTestbed, fakeBucketTestbed } from '../../kit/conformance/bucket-testbeds.ts';
import { keepsBuckets } from '../../kit/conformance/buckets.ts';

keepsBuckets('local', () => directoryTestbed(local));
keepsBuckets('simulated', () => directoryTestbed(simulatedProvider(Date.now)));
keepsBuckets('aws', () => fakeBucketTestbed('aws'));
keepsBuckets('gcp', () => fakeBucketTestbed('gcp'));
keepsBuckets('azure', () => fakeBucketTestbed('azure'));
