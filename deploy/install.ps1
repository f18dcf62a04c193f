<#
.SYNOPSIS
Installs weir on Windows, or a newer version over an older one.

.DESCRIPTION
Downloads weir, compares it with the signed checksums of the release, and puts it into -Dir, which
is %LOCALAPPDATA%\Programs\weir. It needs no administrator and adds the folder to the user's PATH.

    irm ADDRESS/install.ps1 | iex
    & ([scriptblock]::Create((irm ADDRESS/install.ps1))) -Version v1.2.0

A newer version is replaced by an older one with -Version alone. -From is where the files of the
release are, for a mirror or a server of your own. -Serve starts weir when it is installed.
-Uninstall removes the program and leaves your data.
#>
param([string]$Version = '', [string]$Dir = '', [string]$From = '', [switch]$Serve, [switch]$Uninstall)

$releases = '' # their address, which the release sets
$signer = ''   # public key that signs SHA256SUMS; empty for a release without a signature

function Get-File([string]$Address, [string]$To) {
  try {
    Invoke-WebRequest -UseBasicParsing -Uri $Address -OutFile $To
  } catch {
    throw "install.ps1: $Address cannot be downloaded: $_"
  }
}

# Test-Signature checks the signature of SHA256SUMS. cmd passes the bytes of the file as they are.
function Test-Signature([string]$Work) {
  if (-not $signer) { return }
  if (-not (Get-Command ssh-keygen -ErrorAction SilentlyContinue)) {
    Write-Warning 'Without ssh-keygen (the optional feature OpenSSH Client) the signature is not verified, only the checksum.'
    return
  }
  Get-File "$From/SHA256SUMS.sig" "$Work\SHA256SUMS.sig"
  [IO.File]::WriteAllText("$Work\signers", "weir $signer`n")
  cmd /c "ssh-keygen -Y verify -f ""$Work\signers"" -I weir -n weir-release -s ""$Work\SHA256SUMS.sig"" < ""$Work\SHA256SUMS"" >nul 2>&1"
  if ($LASTEXITCODE -ne 0) {
    throw 'install.ps1: the signature of SHA256SUMS is not that of weir. Nothing was installed'
  }
}

# Select-Archive returns the checksum and the name of the archive for this system.
function Select-Archive([string]$Work, [string]$System) {
  $found = @(Get-Content "$Work\SHA256SUMS" | ForEach-Object {
      $sum, $name = $_ -split '\s+', 2
      if ($name -match "^weir-([^/\\]+)-$System\.zip$" -and (-not $Version -or $Matches[1] -eq $Version -or $Matches[1] -eq "v$Version")) {
        [pscustomobject]@{ Sum = $sum; Name = $name; Version = $Matches[1] }
      }
    })
  if ($found.Count -eq 0) { throw "install.ps1: $From has no program for $System $Version" }
  if ($found.Count -gt 1) { throw "install.ps1: $From has several versions. Choose one with -Version" }
  $found[0]
}

# Get-SortKey returns a text by which releases are in order, nothing for what is not one. A
# pre-release is below its release, and its parts are compared as numbers where they are.
function Get-SortKey([string]$Of) {
  if (-not ($Of -match '^v?(\d+)\.(\d+)\.(\d+)(-([0-9A-Za-z.-]+))?(\+.*)?$')) { return }
  $pre = $Matches[5]
  $key = @($Matches[1], $Matches[2], $Matches[3] | ForEach-Object { $_.PadLeft(10, '0') }) -join '.'
  if (-not $pre) { return "${key}~" }
  $parts = @($pre -split '\.' | ForEach-Object { if ($_ -match '^\d+$') { '0' + $_.PadLeft(10, '0') } else { "1$_" } })
  "${key}-" + ($parts -join '!')
}

# Test-Older refuses to replace a newer version by an older one, which only -Version asks for.
function Test-Older([string]$Offered) {
  if ($Version -or -not (Test-Path -LiteralPath "$Dir\weir.exe")) { return }
  try { $before = ("$(& "$Dir\weir.exe" version)" -split ' ')[1] } catch { return }
  $own, $new = (Get-SortKey $before), (Get-SortKey $Offered)
  if ($own -and $new -and [string]::CompareOrdinal($own, $new) -gt 0) {
    throw "install.ps1: $Dir has weir $before, which is newer than $Offered. To install the older one: -Version $Offered"
  }
}

# Install-Program puts the program into its folder. One that runs cannot be overwritten, but renamed.
function Install-Program([string]$Program) {
  $fresh = "$Dir\weir.new.exe"
  try {
    New-Item -ItemType Directory -Force $Dir | Out-Null
    Copy-Item -Force -LiteralPath $Program -Destination $fresh
  } catch {
    throw "install.ps1: $Dir cannot be written. Choose another folder with -Dir: $_"
  }
  $runs = $false
  try { & $fresh version | Out-Null; $runs = $LASTEXITCODE -eq 0 } catch { $runs = $false }
  if (-not $runs) {
    Remove-Item -LiteralPath $fresh
    throw 'install.ps1: the program does not run on this computer. Nothing was installed'
  }
  $had = Test-Path -LiteralPath "$Dir\weir.exe"
  try {
    if ($had) { Move-Item -Force -LiteralPath "$Dir\weir.exe" -Destination "$Dir\weir.old.exe" }
  } catch {
    Remove-Item -LiteralPath $fresh
    throw "install.ps1: the version before the last one still runs. Stop it and run this again: $_"
  }
  try {
    Move-Item -LiteralPath $fresh -Destination "$Dir\weir.exe"
  } catch {
    if ($had) { Move-Item -LiteralPath "$Dir\weir.old.exe" -Destination "$Dir\weir.exe" }
    throw "install.ps1: $Dir cannot be written. Nothing was installed: $_"
  }
}

# Set-UserPath changes the folders of the user's PATH, whose variables stay as they are written. New
# terminals know of it by a change that Windows tells them, which the registry does not cause.
function Set-UserPath([scriptblock]$Change) {
  $key = [Microsoft.Win32.Registry]::CurrentUser.CreateSubKey('Environment')
  try {
    $folders = @("$($key.GetValue('Path', '', 'DoNotExpandEnvironmentNames'))" -split ';' | Where-Object { $_ })
    $key.SetValue('Path', (@(& $Change $folders) -join ';'), 'ExpandString')
  } finally {
    $key.Dispose()
  }
  [Environment]::SetEnvironmentVariable('WEIR_INSTALL', 'x', 'User')
  [Environment]::SetEnvironmentVariable('WEIR_INSTALL', $null, 'User')
}

function Uninstall-Weir {
  if (-not (Test-Path -LiteralPath "$Dir\weir.exe")) { throw "install.ps1: there is no $Dir\weir.exe" }
  $service = "$((Get-ItemProperty 'HKLM:\SYSTEM\CurrentControlSet\Services\weir' -ErrorAction SilentlyContinue).ImagePath)"
  if ($service.IndexOf("$Dir\weir.exe", [StringComparison]::OrdinalIgnoreCase) -ge 0) {
    throw "install.ps1: $Dir\weir.exe is a service. Remove that first, as an administrator: $Dir\weir.exe service uninstall"
  }
  foreach ($name in 'weir.exe', 'weir.old.exe', 'weir.new.exe') {
    if (-not (Test-Path -LiteralPath "$Dir\$name")) { continue }
    try {
      Remove-Item -Force -LiteralPath "$Dir\$name"
    } catch {
      throw "install.ps1: $Dir\$name cannot be removed. Stop weir and run this again: $_"
    }
  }
  Set-UserPath { param($folders) $folders | Where-Object { $_ -ne $Dir } }
  Write-Output "Removed $Dir\weir.exe. Its data stays, in $env:LOCALAPPDATA\weir unless you chose another folder."
}

# Install-Weir is a function so that the preferences end with it: with iex the script runs in the
# scope of the terminal.
function Install-Weir {
  $ErrorActionPreference = 'Stop'
  $ProgressPreference = 'SilentlyContinue' # the progress bar makes downloads slow
  if (-not $Dir) { $Dir = Join-Path $env:LOCALAPPDATA 'Programs\weir' }
  $Dir = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Dir) # PATH needs the whole one
  if ($Uninstall) { return Uninstall-Weir }
  $machine = if ($env:PROCESSOR_ARCHITEW6432) { $env:PROCESSOR_ARCHITEW6432 } else { $env:PROCESSOR_ARCHITECTURE }
  $system = switch ($machine) {
    'AMD64' { 'windows-amd64' }
    'ARM64' { 'windows-arm64' }
    default { throw "install.ps1: there is no program for Windows on $machine" }
  }
  if (-not $From) {
    if (-not $releases) { throw 'install.ps1: this release does not name its address. Add it: -From ADDRESS' }
    $From = if ($Version) { "$releases/download/v$($Version -replace '^v')" } else { "$releases/latest/download" }
  }
  $From = $From.TrimEnd('/')
  [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
  $work = Join-Path ([IO.Path]::GetTempPath()) ([IO.Path]::GetRandomFileName())
  New-Item -ItemType Directory $work | Out-Null
  try {
    Get-File "$From/SHA256SUMS" "$work\SHA256SUMS"
    Test-Signature $work
    $archive = Select-Archive $work $system
    Test-Older $archive.Version
    Write-Output "Downloading $($archive.Name)"
    Get-File "$From/$($archive.Name)" "$work\$($archive.Name)"
    if ((Get-FileHash -Algorithm SHA256 "$work\$($archive.Name)").Hash -ne $archive.Sum) {
      throw "install.ps1: the checksum of $($archive.Name) is not that of the release. Nothing was installed"
    }
    Expand-Archive "$work\$($archive.Name)" $work
    Install-Program "$work\$($archive.Name -replace '\.zip$')\weir.exe"
  } finally {
    Remove-Item -Recurse -Force $work
  }
  Write-Output "Installed $(& "$Dir\weir.exe" version) in $Dir"
  if (([Environment]::GetEnvironmentVariable('Path', 'User') -split ';') -notcontains $Dir) {
    Set-UserPath { param($folders) @($folders) + $Dir }
    Write-Output "Added $Dir to your PATH."
  }
  if (($env:Path -split ';') -notcontains $Dir) { $env:Path = "$env:Path;$Dir" } # of this terminal
  $run = 'weir'
  $found = Get-Command weir -CommandType Application -ErrorAction SilentlyContinue | Select-Object -First 1
  if (-not $found -or $found.Source -ne "$Dir\weir.exe") {
    $run = "& '$($Dir -replace "'", "''")\weir.exe'"
    if ($found) { Write-Output "Another weir comes first in your PATH: $($found.Source)" }
  }
  if ($Serve) {
    & "$Dir\weir.exe" serve
    return
  }
  Write-Output "Start it: $run serve"
}

Install-Weir
