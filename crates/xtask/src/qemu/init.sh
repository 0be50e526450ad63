#!/bin/sh
# The first process of the virtual machine: makes a small root, attacks, says how it
# went in one last line, and turns the machine off.
export PATH=/bin
end() {
    echo "attack: exit $1"
    sync
    poweroff -f
}
if [ "$1" != attack ]; then
    # The first root can't be turned from, which making sandboxes needs.
    mkdir -p /root
    mount -t tmpfs -o mode=755 root /root
    cp -a /bin /lib /lib64 /etc /usr /modules /profile /init /attack /root/
    mkdir -p /root/proc /root/sys /root/dev /root/tmp /root/home /root/run /root/var
    chmod 1777 /root/tmp
    exec switch_root /root /init attack
fi
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t securityfs security /sys/kernel/security
mount -t cgroup2 cgroup2 /sys/fs/cgroup
for name in memory pids cpu; do
    echo "+$name" > /sys/fs/cgroup/cgroup.subtree_control || end 2
done
insmod /modules/overlay.ko || end 2
ifconfig lo up
echo "kernel $(uname -r), security modules $(cat /sys/kernel/security/lsm)"
failed=0

echo "== as root, control groups of version 2"
/attack --fast || failed=1

echo "== 39: deadlines while the clock is set back and forth"
touch /tmp/turning
(while [ -e /tmp/turning ]; do
    date -s 2001-01-01 > /dev/null; sleep 0.2; date -s 2031-01-01 > /dev/null; sleep 0.2
done) &
/attack --fast --only 29 || failed=1
rm /tmp/turning
wait

# What an ordinary user gets, and what it is told where it gets nothing.
mkdir -p /home/agent && chown 1000:1000 /home/agent
as_user() {
    su agent -s /bin/sh -c "TMPDIR=/home/agent $1"
}
echo "== as an ordinary user with a group of its own to divide"
mkdir -p /sys/fs/cgroup/agent/own
for name in memory pids cpu; do
    echo "+$name" > /sys/fs/cgroup/agent/cgroup.subtree_control || end 2
done
for dir in /sys/fs/cgroup/agent /sys/fs/cgroup/agent/own; do
    chown 1000:1000 $dir $dir/cgroup.procs $dir/cgroup.subtree_control $dir/cgroup.threads
done
mkdir /sys/fs/cgroup/first
echo $$ > /sys/fs/cgroup/agent/own/cgroup.procs
as_user "/attack --fast" || failed=1
echo $$ > /sys/fs/cgroup/first/cgroup.procs
echo "== as an ordinary user without one"
as_user "/attack --fast" || failed=1

refused() { # refused WHAT: the last try must have failed with these words
    if ! grep -q "$1" /tmp/said; then
        echo "UNEXPECTED: it did not say: $1"
        failed=1
    fi
}
echo "== as an ordinary user, user namespaces without capabilities by AppArmor"
if cat /profile > /sys/kernel/security/apparmor/.load; then
    as_user "/attack --fast --only 1" > /tmp/said 2>&1 && failed=1
    cat /tmp/said
    refused "user namespaces are"
    refused "run as root"
    echo -n outrigger-attack > /sys/kernel/security/apparmor/.remove
else
    echo "UNEXPECTED: the kernel took no profile"
    failed=1
fi
echo "== as an ordinary user, no user namespaces at all"
if [ -e /proc/sys/kernel/unprivileged_userns_clone ]; then
    echo 0 > /proc/sys/kernel/unprivileged_userns_clone
else
    echo 0 > /proc/sys/user/max_user_namespaces
fi
as_user "/attack --fast --only 1" > /tmp/said 2>&1 && failed=1
cat /tmp/said
refused "user namespaces"
refused "set "
end $failed
