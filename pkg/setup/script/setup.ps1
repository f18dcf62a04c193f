# Sets up @NAME@ to use a weir gateway.
#
#   @ID@.ps1 GATEWAY LEASE   creates a key and writes the configuration
#   @ID@.ps1 -Undo           restores the files as they were before
#
# GATEWAY is the address of the gateway. LEASE is a code from its dashboard, valid once
# and for five minutes. These files are changed, and nothing else:
#
@PATHS@
param([string]$Gateway = '', [string]$Lease = '', [switch]$Undo)
$ErrorActionPreference = 'Stop'
Set-StrictMode -Version 2

$tool = '@ID@'
$state = Join-Path $HOME ".local/state/weir-setup/$tool"
function Under([string]$root, [string]$folder, [string]$name, [string]$other) {
  $base = $null
  if ($root) { $base = [Environment]::GetEnvironmentVariable($root) }
  if (-not $base) {
    $base = $HOME
    if ($folder) { $base = Join-Path $HOME $folder }
  }
  if ($other -and (Test-Path -LiteralPath (Join-Path $base $other))) { $name = $other }
  return Join-Path $base $name
}

# Each edit is: operation, path, match and value with tabs between.
$files = @(
@FILES@
)
$values = @{ '__URL__' = ''; '__KEY__' = ''; '__MODEL__' = ''; '__SMALL__' = '' }
function Fill([string]$text) {
  foreach ($mark in $values.Keys) { $text = $text.Replace($mark, $values[$mark]) }
  return $text
}

function Get-Member-Of($object, [string]$name) {
  $member = $object.PSObject.Properties[$name]
  if ($null -eq $member) { return $null }
  return , $member.Value
}
function Set-Member-Of($object, [string]$name, $value) {
  if ($null -ne $object.PSObject.Properties[$name]) { $object.$name = $value }
  else { Add-Member -InputObject $object -NotePropertyName $name -NotePropertyValue $value }
}

# Comments in a JSON file are lost, and Windows PowerShell 5 refuses them.
function Edit-Json([string]$text, $edits) {
  if ($text.Trim() -eq '') { $text = '{}' }
  $document = ConvertFrom-Json $text
  foreach ($edit in $edits) {
    $operation, $path, $match, $value = $edit.Split("`t")
    $value = (ConvertFrom-Json ('{"value":' + (Fill $value) + '}')).value
    $names = @($path.Split('.') | ForEach-Object { Fill $_ })
    $object = $document
    for ($i = 0; $i -lt $names.Count - 1; $i++) {
      $next = Get-Member-Of $object $names[$i]
      if ($null -ne $next -and $next -isnot [PSCustomObject]) { throw "$($names[$i]) is not an object." }
      if ($null -eq $next) {
        $next = New-Object PSObject
        Set-Member-Of $object $names[$i] $next
      }
      $object = $next
    }
    $last = $names[$names.Count - 1]
    $old = Get-Member-Of $object $last
    if ($operation -eq 'default' -and $null -ne $old) { continue }
    if ($operation -eq 'item') {
      $items = @()
      if ($null -ne $old) { $items = @($old | Where-Object { (Get-Member-Of $_ $match) -ne (Get-Member-Of $value $match) }) }
      Set-Member-Of $object $last @($items + $value)
    } else { Set-Member-Of $object $last $value }
  }
  return (ConvertTo-Json $document -Depth 100) + "`n"
}

# Lines NAME=value of .env files, and NAME: value of YAML files.
function Edit-Lines([string]$text, $edits, [string]$format) {
  $lines = @($text -split "`r?`n")
  if ($text -eq '') { $lines = @() }
  elseif ($lines[-1] -eq '') { $lines = @($lines | Select-Object -SkipLast 1) }
  foreach ($edit in $edits) {
    $operation, $path, $match, $value = $edit.Split("`t")
    $value = (Fill $value).Replace('\n', "`n")
    if ($format -eq 'env') { $begin = "^\s*(export\s+)?$path\s*="; $line = "$path=$value" }
    else { $begin = "^$([regex]::Escape($path)):(\s|$)"; $line = "${path}: $value" }
    $there = @($lines | Where-Object { $_ -match $begin }).Count -gt 0
    if ($operation -eq 'default' -and $there) { continue }
    if ($operation -eq 'item') {
      if ($there) { throw "$path is in the file already. Add this to it by hand:`n- $($value.Replace("`n", "`n  "))" }
      $lines += @("${path}:", "  - $($value.Replace("`n", "`n    "))")
    } elseif ($there) { $lines = @($lines | ForEach-Object { if ($_ -match $begin) { $line } else { $_ } }) }
    else { $lines += $line }
  }
  return ($lines -join "`n") + "`n"
}

# Values of the top level, and whole tables, which are written at the end.
function Edit-Toml([string]$text, $edits) {
  $tables = [ordered]@{}
  $top = [ordered]@{}
  foreach ($edit in $edits) {
    $operation, $path, $match, $value = $edit.Split("`t")
    $at = $path.LastIndexOf('.')
    $line = "$($path.Substring($at + 1)) = $(Fill $value)"
    if ($at -lt 0) { $top[$path] = $line }
    else { $tables[$path.Substring(0, $at)] = @($tables[$path.Substring(0, $at)]) + $line }
  }
  $out = @()
  $isTop = $true
  $dropping = $false
  foreach ($line in ($text -split "`r?`n")) {
    if ($line -match '^\s*\[\[?([^\],=]+)\]\]?\s*(#.*)?$') {
      $isTop = $false
      $dropping = $tables.Contains($Matches[1].Trim())
      if ($dropping) { continue }
    }
    if ($isTop -and $line -match '^\s*"?([A-Za-z_]+)"?\s*=' -and $top.Contains($Matches[1])) { continue }
    if ($dropping -and $line -notmatch '^\s*(#.*)?$') { continue }
    $out += $line
  }
  $rest = ($out -join "`n").Trim()
  $result = @($top.Values) -join "`n"
  if ($rest) { $result += "`n`n$rest" }
  foreach ($name in $tables.Keys) { $result += "`n`n[$name]`n" + (@($tables[$name] | Where-Object { $_ }) -join "`n") }
  return $result + "`n"
}

function Edit-File($file) {
  $text = ''
  if (Test-Path -LiteralPath $file.Path) { $text = [IO.File]::ReadAllText($file.Path) }
  switch ($file.Format) {
    'json' { return Edit-Json $text $file.Edits }
    'toml' { return Edit-Toml $text $file.Edits }
    default { return Edit-Lines $text $file.Edits $file.Format }
  }
}

# Get-Destination follows the links of a file, which may lead to one that does not exist yet.
function Get-Destination([string]$path) {
  for ($hops = 0; $hops -lt 40; $hops++) {
    $item = Get-Item -LiteralPath $path -Force -ErrorAction SilentlyContinue
    if ($null -eq $item -or $item.LinkType -ne 'SymbolicLink') { break }
    $next = [string]@($item.Target)[0]
    if (-not [IO.Path]::IsPathRooted($next)) { $next = Join-Path (Split-Path $path) $next }
    $path = $next
  }
  return $path
}

# Get-Record returns where the state of a file is kept: a new place if an earlier set-up
# wrote another file, as it does under another CODEX_HOME.
function Get-Record([string]$path) {
  $n = 1
  while ((Test-Path -LiteralPath (Join-Path $state "$n.path")) -and [IO.File]::ReadAllText((Join-Path $state "$n.path")).Trim() -ne $path) { $n++ }
  return Join-Path $state "$n"
}

function Restore {
  if (-not (Test-Path -LiteralPath $state)) { throw 'Nothing to undo: this script has not set up @NAME@ for this user.' }
  foreach ($record in Get-ChildItem -LiteralPath $state -Filter *.path) {
    $saved = $record.FullName.Substring(0, $record.FullName.Length - 5)
    $path = [IO.File]::ReadAllText($record.FullName).Trim()
    if ((Test-Path -LiteralPath $path) -and [IO.File]::ReadAllText($path) -ne [IO.File]::ReadAllText("$saved.after")) {
      Copy-Item -LiteralPath $path "$path.before-undo" -Force
      Write-Host "$path has changed since the set-up. It was saved as $path.before-undo"
    }
    if (Test-Path -LiteralPath "$saved.before") {
      Copy-Item -LiteralPath "$saved.before" $path -Force
      Write-Host "Restored $path"
    } else {
      Remove-Item -LiteralPath $path -ErrorAction SilentlyContinue
      Write-Host "Removed $path"
    }
  }
  Remove-Item -LiteralPath $state -Recurse -Force
  Write-Host 'The key that the set-up created still works. Revoke it in the dashboard, under Keys.'
}

function Install {
  $url = $Gateway.TrimEnd('/')
  if ($url -notmatch '^https?://[A-Za-z0-9.:_-]+$') { throw 'The address must be scheme and host only, such as https://weir.example.com.' }
  if ($Lease -notmatch '^[a-z0-9-]+$') { throw 'The lease is not readable. Copy the whole command from the dashboard.' }
  # A file that cannot be edited is found before the lease is used.
  foreach ($name in @($values.Keys)) { $values[$name] = 'check' }
  foreach ($file in $files) { $null = Edit-File $file }
  $body = ConvertTo-Json @{ lease = $Lease; tool = $tool }
  try { $answer = Invoke-RestMethod -Method Post -Uri "$url/setup/claim" -ContentType 'application/json' -Body $body -MaximumRedirection 0 }
  catch { throw "The gateway refused the lease. Create a new command in the dashboard. ($($_.Exception.Message))" }
  if ($answer.apiKey -notmatch '^[A-Za-z0-9_-]+$') { throw "The gateway's answer has no key. Nothing was changed." }
  if ("$($answer.model) $($answer.smallModel)" -notmatch '^[A-Za-z0-9._:/@+~-]+ [A-Za-z0-9._:/@+~-]+$') { throw "The gateway's answer has no usable model. Nothing was changed." }
  $values['__URL__'] = $url
  $values['__KEY__'] = $answer.apiKey
  $values['__MODEL__'] = $answer.model
  $values['__SMALL__'] = $answer.smallModel
  $texts = @($files | ForEach-Object { Edit-File $_ })
  New-Item -ItemType Directory -Force $state | Out-Null
  for ($i = 0; $i -lt $files.Count; $i++) {
    $path = Get-Destination $files[$i].Path
    $saved = Get-Record $path
    if (-not (Test-Path -LiteralPath "$saved.path")) {
      if (Test-Path -LiteralPath $path) { Copy-Item -LiteralPath $path "$saved.before" -Force }
      [IO.File]::WriteAllText("$saved.path", $path)
    }
    New-Item -ItemType Directory -Force (Split-Path $path) | Out-Null
    [IO.File]::WriteAllText($path, $texts[$i])
    [IO.File]::WriteAllText("$saved.after", $texts[$i])
    Write-Host "Changed $path"
    foreach ($edit in $files[$i].Edits) { Write-Host "    $($edit.Split("`t")[1])" }
  }
  Write-Host "The files as they were are in $state. To restore them:"
  Write-Host "    & ([scriptblock]::Create((irm '$url/setup/$tool.ps1'))) -Undo"
}

if ($Undo) { Restore } else { Install }
