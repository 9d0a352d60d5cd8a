import { local } from '../../../providers/local/index.ts';
import { simulatedProvider } from '../../../providers/simulated/index.ts';
import { directoryScene, fakeBucketScene } from '../../kit/conformance/bucket-scenes.ts';
import { keepsBuckets } from '../../kit/conformance/buckets.ts';

keepsBuckets('local', () => directoryScene(local));
keepsBuckets('simulated', () => directoryScene(simulatedProvider(Date.now)));
keepsBuckets('aws', () => fakeBucketScene('aws'));
keepsBuckets('gcp', () => fakeBucketScene('gcp'));
keepsBuckets('azure', () => fakeBucketScene('azure'));
