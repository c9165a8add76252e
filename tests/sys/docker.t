# The stack as containers. No engine is needed: a pretended docker writes down how it is called, and where the real
# docker-compose is installed it judges docker-compose.yml.
use strict;
use warnings;
use Cwd 'abs_path';
use File::Temp 'tempdir';
use Test::More;
use lib 'tests/lib';
use Sim;

my $root = abs_path($ENV{DRIVESIM_ROOT} // '.');

# A docker whose engine answers; $up is what `compose up` does.
sub docker {
    my ($dir, $up) = @_;
    spew("$dir/docker", <<"END");
#!/bin/sh
echo "\$*" >> '$dir/calls'
case "\$*" in
info*|'compose version') exit 0 ;;
*' up '*) env | grep ^DRIVESIM_ > '$dir/env'; $up ;;
*' ps') echo 'NAME STATE' ;;
*) exit 0 ;;
esac
END
    chmod 0755, "$dir/docker";
    return { PATH => "$dir:$ENV{PATH}" };
}

subtest 'containers that do not come up' => sub {
    my ($dir, $bin) = map { abs_path(tempdir(CLEANUP => 1)) } 1, 2;
    spew("$dir/docker-compose.yml", slurp("$root/docker-compose.yml"));
    my $env = docker($bin, "echo 'no space left on device' >&2; exit 17");
    my $r = sim(['stack', 'up'], dir => $dir, env => $env);
    is $r->{status}, 3, 'up fails';
    is $r->{out}, '', 'no exports';
    like $r->{err}, qr/^  no space left on device$/m, 'shows what docker said';
    like $r->{err}, qr/^sim stack: docker compose failed with status 17$/m, 'and which step it was';
    my @calls = split /\n/, slurp("$bin/calls");
    my ($up) = grep { / up / } @calls;
    like $up, qr{^compose -p drivesim-[0-9a-f]{12} -f \Q$dir\E/docker-compose\.yml up -d --build postgres redis server$}, 'how it is called';
    my ($project) = $up =~ /-p (\S+)/;
    like $calls[-1], qr{^compose -p $project -f \S+ down -v --remove-orphans}, 'taken down again';
    ok !-e "$dir/.sim", 'nothing is left';
    my %given = slurp("$bin/env") =~ /^(\w+)=(.*)$/mg;
    is_deeply [sort keys %given],
      [map { "DRIVESIM_$_" } qw(FILE_KEY JWT_SECRET PASSWORD POSTGRES_PORT REDIS_PORT S3_SECRET SERVER_PORT STORE_PORT)], 'ports and secrets are given';
    my $file = slurp("$root/docker-compose.yml");
    like $file, qr/\$\{$_:-/, "$_ is used" for keys %given;
    cmp_ok length $given{DRIVESIM_PASSWORD}, '>=', 32, 'a password of its own';
};

subtest 'an engine, but no docker-compose.yml or no compose' => sub {
    my ($dir, $bin) = map { abs_path(tempdir(CLEANUP => 1)) } 1, 2;
    my $env = docker($bin, 'exit 0');
    spew("$dir/docker-compose.yml", 'services: {}');
    my $r = sim(['stack', 'up', '--native', '--no-server'], dir => $dir, env => $env);
    is $r->{status}, 0, '--native does not ask docker' or diag $r->{err};
    ok !-e "$bin/calls", 'not once';
    is sim(['stack', 'down'], dir => $dir, env => $env)->{status}, 0, 'down';
    my $none = abs_path(tempdir(CLEANUP => 1));
    spew("$none/docker", "#!/bin/sh\nexit 1\n");
    chmod 0755, "$none/docker";
    $r = sim(['stack', 'up', '--docker'], dir => $dir, env => { PATH => "$none:$ENV{PATH}" });
    is $r->{status}, 3, '--docker without an engine';
    like $r->{err}, qr/^sim stack: no Docker engine answers/m, 'says so';
    ok !-e "$dir/.sim", 'nothing is left';
};

SKIP: {
    my $tool = (grep { -x "$_/docker-compose" } split /:/, $ENV{PATH})[0];
    skip 'docker-compose is not installed', 1 unless $tool;
    subtest 'docker-compose.yml' => sub {
        my $config = `cd '$root' && docker-compose --profile demo config 2>&1`;
        is $?, 0, 'is valid' or diag $config;
        my @ports = $config =~ /^ +- (\S+:\S+:\d+\/tcp)$/mg;
        is scalar(@ports), 4, 'four ports are published';
        is_deeply [grep { !/^127\.0\.0\.1:/ } @ports], [], 'all on loopback';
        is_deeply [sort map { (split /:/)[1] } @ports], [qw(3200 55433 56380 59001)], 'those of the source document';
        like $config, qr/image: $_$/m, "$_" for qw(postgres:18-alpine redis:8-alpine rustfs/rustfs:latest);
        like $config, qr/max_connections=300/, '300 connections';
    };
}

done_testing;
