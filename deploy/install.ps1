<#
.SYNOPSIS
Installs weir on Windows, or a newer version over an older one.

.DESCRIPTION
Downloads weir, compares it with the signed checksums of the release, and puts it into -Dir, which
is %LOCALAPPDATA%\Programs\weir. It needs no administrator and adds the folder to the user's PATH.

    irm ADDRESS/install.ps1 | iex
    & ([scriptblock]::Create((irm ADDRESS/install.ps1))) -Version v1.2.0

-From is where the files of the release are, for a mirror or a server of your own. -Uninstall
removes the program and leaves your data.
#>
param([string]$Version = '', [string]$Dir = '', [string]$From = '', [switch]$Uninstall)

$releases = '' # their address, which the release sets
$signer = ''   # public key that signs SHA256SUMS; empty for a release without a signature

$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue' # the progress bar makes downloads slow

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
      if ($name -match "^weir-([^/\\]+)-$System\.zip$" -and (-not $Version -or $Matches[1] -eq $Version)) {
        [pscustomobject]@{ Sum = $sum; Name = $name }
      }
    })
  if ($found.Count -eq 0) { throw "install.ps1: $From has no program for $System $Version" }
  if ($found.Count -gt 1) { throw "install.ps1: $From has several versions. Choose one with -Version" }
  $found[0]
}

# Install-Program puts the program into its folder. One that runs cannot be overwritten, but renamed.
function Install-Program([string]$Program) {
  try {
    New-Item -ItemType Directory -Force $Dir | Out-Null
    Copy-Item -Force $Program "$Dir\weir.new.exe"
  } catch {
    throw "install.ps1: $Dir cannot be written. Choose another folder with -Dir: $_"
  }
  & "$Dir\weir.new.exe" version | Out-Null
  if ($LASTEXITCODE -ne 0) {
    Remove-Item "$Dir\weir.new.exe"
    throw 'install.ps1: the program does not run on this computer. Nothing was installed'
  }
  if (Test-Path "$Dir\weir.exe") { Move-Item -Force "$Dir\weir.exe" "$Dir\weir.old.exe" }
  Move-Item "$Dir\weir.new.exe" "$Dir\weir.exe"
}

if (-not $Dir) { $Dir = Join-Path $env:LOCALAPPDATA 'Programs\weir' }
if ($Uninstall) {
  if (-not (Test-Path "$Dir\weir.exe")) { throw "install.ps1: there is no $Dir\weir.exe" }
  Remove-Item -Force "$Dir\weir*.exe"
  Write-Output "Removed $Dir\weir.exe. Its data stays, in $env:LOCALAPPDATA\weir unless you chose another folder."
  return
}
$machine = if ($env:PROCESSOR_ARCHITEW6432) { $env:PROCESSOR_ARCHITEW6432 } else { $env:PROCESSOR_ARCHITECTURE }
$system = switch ($machine) {
  'AMD64' { 'windows-amd64' }
  'ARM64' { 'windows-arm64' }
  default { throw "install.ps1: there is no program for Windows on $machine" }
}
if (-not $From) {
  if (-not $releases) { throw 'install.ps1: this release does not name its address. Add it: -From ADDRESS' }
  $From = if ($Version) { "$releases/download/$Version" } else { "$releases/latest/download" }
}
$From = $From.TrimEnd('/')
[Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
$work = Join-Path ([IO.Path]::GetTempPath()) ([IO.Path]::GetRandomFileName())
New-Item -ItemType Directory $work | Out-Null
try {
  Get-File "$From/SHA256SUMS" "$work\SHA256SUMS"
  Test-Signature $work
  $archive = Select-Archive $work $system
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
$path = [Environment]::GetEnvironmentVariable('Path', 'User')
if (($path -split ';') -notcontains $Dir) {
  [Environment]::SetEnvironmentVariable('Path', (@($path, $Dir | Where-Object { $_ }) -join ';'), 'User')
  Write-Output "Added $Dir to your PATH, for new terminals."
}
Write-Output "Installed $(& "$Dir\weir.exe" version) in $Dir"
Write-Output "Start it: $Dir\weir.exe serve"
